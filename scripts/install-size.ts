/**
 * Packs the packages, installs them into an empty project, and prints how much disk that takes. Run: npm run install:size
 */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const LARGEST = 5

function kilobytesOf(...paths: readonly string[]): Map<string, number> {
  const lines = execFileSync('du', ['-sk', ...paths], { encoding: 'utf8' })
    .trim()
    .split('\n')
  return new Map(lines.map((line) => line.split('\t')).map(([size, path = '']) => [path, Number(size)]))
}

function install(tarballs: string, folder: string, options: readonly string[]): void {
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'app', private: true }))
  const files = readdirSync(tarballs).map((name) => join(tarballs, name))
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)))
  const args = ['install', '--no-audit', '--no-fund', '--loglevel=error', ...options, ...files]
  execFileSync('npm', args, { cwd: folder, env, stdio: ['ignore', 'ignore', 'inherit'] })
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
  execFileSync(process.execPath, [join(import.meta.dirname, 'pack.ts'), '--out', tarballs], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  for (const [title, options] of [
    ['with Node and Postgres', []],
    ['without Node and Postgres', ['--omit=optional']],
  ] as const) {
    const folder = join(work, options.length === 0 ? 'whole' : 'bare')
    install(tarballs, folder, options)
    print(title, folder)
  }
} finally {
  rmSync(work, { recursive: true })
}
