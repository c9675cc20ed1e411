/**
 * Builds the packages that people install and writes their tarballs into a folder. Run: npm run pack -- --out <folder>
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

import { builtFolder, publishedPackages } from './packages/published.ts'

interface Packed {
  readonly filename: string
  readonly size: number
  readonly unpackedSize: number
}

const { out } = parseArgs({ options: { out: { type: 'string' } } }).values
if (out === undefined) throw new Error('expected --out <folder>, got nothing: npm run pack -- --out <folder>')
const folder = resolve(out)
mkdirSync(folder, { recursive: true })
await import('./build.ts')
for (const published of publishedPackages()) {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
  const answer = JSON.parse(execFileSync('npm', args, { cwd: builtFolder(published), encoding: 'utf8' })) as unknown
  const [packed] = Object.values(answer as Record<string, Packed>)
  if (packed === undefined) throw new Error(`npm packed nothing for ${published.folder}`)
  const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(0)} kB`
  process.stdout.write(`${packed.filename}  ${kilobytes(packed.size)}, ${kilobytes(packed.unpackedSize)} unpacked\n`)
}
