/**
 * Packs the packages, installs them into an empty project, and prints how much disk that takes. Run: npm run install:size
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { installTarballs } from './packages/install.ts'
import { pack } from './packages/pack.ts'

const LARGEST = 5

function kilobytesOf(...paths: readonly string[]): Map<string, number> {
  const lines = execFileSync('du', ['-sk', ...paths], { encoding: 'utf8' })
    .trim()
    .split('\n')
  return new Map(lines.map((line) => line.split('\t')).map(([size, path = '']) => [path, Number(size)]))
}

function print(title: string, folder: string): void {
  const modules = join(folder, 'node_modules')
  const [total = 0] = kilobytesOf(modules).values()
  const largest = [...kilobytesOf(...readdirSync(modules).map((name) => join(modules, name)))]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, LARGEST)
    .map(([path, size]) => `${path.slice(modules.length + 1)} ${(size / 1024).toFixed(0)}`)
  process.stdout.write(`${title.padEnd(26)} ${(total / 1024).toFixed(0).padStart(4)} MB  (${largest.join(', ')})\n`)
}

const work = mkdtempSync(join(tmpdir(), 'carillon-size-'))
try {
  const tarballs = join(work, 'tarballs')
  await pack(tarballs)
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)))
  for (const isBare of [false, true]) {
    const folder = join(work, isBare ? 'bare' : 'whole')
    await installTarballs(tarballs, folder, { env, isBare })
    print(isBare ? 'without Node and Postgres' : 'with Node and Postgres', folder)
  }
} finally {
  rmSync(work, { recursive: true })
}
