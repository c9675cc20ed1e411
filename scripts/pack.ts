/**
 * Builds the packages that people install and writes their tarballs into a folder. Run: npm run pack -- --out <folder>
 */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

import { pack } from './packages/pack.ts'

const { out } = parseArgs({ options: { out: { type: 'string' } } }).values
if (out === undefined) throw new Error('expected --out <folder>, got nothing: npm run pack -- --out <folder>')
const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(0)} kB`
for (const { filename, size, unpackedSize } of await pack(resolve(out))) {
  process.stdout.write(`${filename}  ${kilobytes(size)}, ${kilobytes(unpackedSize)} unpacked\n`)
}
