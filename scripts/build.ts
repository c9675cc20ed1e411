/**
 * Builds the packages that people install, in `build/`: JavaScript, types and source maps. In the workspace the sources run without a
 * build, but Node strips no types from files in `node_modules`. Run: npm run build [-- --out <folder>]
 */
import { execFileSync } from 'node:child_process'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'

import { build } from './packages/build.ts'
import { BUILD } from './packages/published.ts'

const { out = BUILD } = parseArgs({ options: { out: { type: 'string' } } }).values
for (const { name, folder, seconds } of await build(resolve(out))) {
  const size = execFileSync('du', ['-sk', folder], { encoding: 'utf8' }).split('\t')[0]
  process.stdout.write(`${name.padEnd(9)} ${String(size).padStart(5)} kB  ${seconds.toFixed(1)} s\n`)
}
