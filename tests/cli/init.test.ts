import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import rootManifest from '../../package.json' with { type: 'json' }
import { REPOSITORY, runTool } from '../house/run-tool.ts'
import { BINARY } from './carillon-process.ts'

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'carillon-init-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

/** `carillon init module …`. It needs neither a server nor a key. */
function run(_command: 'init module', folder: string, ...args: string[]) {
  return runTool(folder, process.execPath, [BINARY, 'init', 'module', ...args])
}

test('a module is written with its test, and the next steps are printed', async () => {
  const folder = emptyFolder()

  const { exitCode, stdout, stderr } = await run('init module', folder, 'ticket', '--out', 'modules/ticket')

  expect({ exitCode, lines: stdout.trim().split('\n') }).toEqual({
    exitCode: 0,
    lines: ['package.json', 'ticket.ts', 'ticket.test.ts', 'README.md'].map((file) => `wrote modules/ticket/${file}`),
  })
  expect(stderr).toContain('cd modules/ticket\n')
  expect(stderr).toContain('CARILLON_MODULES=./ticket.ts npx carillon up\n')
  const manifest = JSON.parse(readFileSync(join(folder, 'modules/ticket/package.json'), 'utf8')) as {
    type: string
    dependencies: Record<string, string>
  }
  expect(manifest.type).toBe('module')
  expect(manifest.dependencies).toEqual({
    '@carillon/api': rootManifest.version,
    '@carillon/core': rootManifest.version,
    '@carillon/server': rootManifest.version,
    carillon: rootManifest.version,
    zod: rootManifest.devDependencies.zod,
  })
})

test('the example is what the command writes', async () => {
  const folder = emptyFolder()
  writeFileSync(join(folder, 'package.json'), '{"name":"mine"}')

  await run('init module', folder, 'greeting')

  expect(readFileSync(join(folder, 'package.json'), 'utf8')).toBe('{"name":"mine"}')
  const example = join(REPOSITORY, 'examples/own-module')
  const files = readdirSync(example).toSorted()
  expect(files).toEqual(
    readdirSync(folder)
      .filter((file) => file !== 'package.json')
      .toSorted(),
  )
  for (const file of files) {
    expect(readFileSync(join(folder, file), 'utf8'), file).toBe(readFileSync(join(example, file), 'utf8'))
  }
})

test('a file that exists is not overwritten, and then nothing is written', async () => {
  const folder = emptyFolder()
  writeFileSync(join(folder, 'ticket.ts'), 'mine')
  writeFileSync(join(folder, 'README.md'), 'mine')

  const { exitCode, stderr } = await run('init module', folder, 'ticket')

  expect(exitCode).toBe(1)
  expect(stderr).toContain('got ticket.ts, README.md: pass --out with another directory')
  expect(readFileSync(join(folder, 'ticket.ts'), 'utf8')).toBe('mine')
  expect(existsSync(join(folder, 'package.json'))).toBe(false)
})

test('a directory that cannot be written is named', async () => {
  const folder = emptyFolder()
  writeFileSync(join(folder, 'file'), '')
  mkdirSync(join(folder, 'other'))

  const { exitCode, stderr } = await run('init module', folder, 'ticket', '--out', 'file')

  expect(exitCode).toBe(1)
  expect(stderr).toContain(`expected to write into ${join(folder, 'file')}, got `)
})

test.each([
  ['Ticket', 'expected a name of a-z, 0-9 and _ that begins with a letter, at most 31 characters, got Ticket'],
  ['a-b', 'got a-b'],
  ['http', 'expected a name that no kind of Carillon has, got http'],
])('the name %s is refused', async (name, message) => {
  const folder = emptyFolder()

  const { exitCode, stderr } = await run('init module', folder, name)

  expect(exitCode).toBe(2)
  expect(stderr).toContain(message)
  expect(readdirSync(folder)).toEqual([])
})
