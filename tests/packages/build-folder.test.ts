import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { takeFolder } from '../../scripts/packages/build.ts'
import { REPOSITORY, runTool } from '../house/run-tool.ts'

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'carillon-folder-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

test('a build refuses a folder with other files, and leaves them alone', async () => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'core'))
  writeFileSync(join(folder, 'core/mine.txt'), 'mine')

  const { exitCode, stderr } = await runTool(REPOSITORY, 'node', ['scripts/build.ts', '--out', folder])

  expect(exitCode).toBe(1)
  expect(stderr).toContain(
    `expected an empty folder, or that of an earlier build (with a file .carillon-build), got ${folder}`,
  )
  expect(readdirSync(folder)).toEqual(['core'])
  expect(readFileSync(join(folder, 'core/mine.txt'), 'utf8')).toBe('mine')
})

test('a build takes an empty folder, a folder that is not there, and the folder of an earlier build', () => {
  const folder = temporaryFolder()

  takeFolder(folder)
  mkdirSync(join(folder, 'core'))
  takeFolder(folder)
  takeFolder(join(folder, 'another'))

  expect(existsSync(join(folder, 'another'))).toBe(true)
})

test.each(['', 'packages', 'packages/core', 'build/core', 'a-folder-that-is-not-there', '..x'])(
  'a build refuses the folder %j of the repository, even if it is empty or not there',
  (name) => {
    const repository = temporaryFolder()
    const folder = join(repository, name)
    if (name.startsWith('packages')) mkdirSync(folder, { recursive: true })
    const before = readdirSync(repository)

    expect(() => takeFolder(folder, repository)).toThrow(/^expected a folder outside of .*, or its folder build, got /)
    expect(readdirSync(repository)).toEqual(before)
  },
)

test('a build takes the folder build of the repository', () => {
  const repository = temporaryFolder()

  takeFolder(join(repository, 'build'), repository)

  expect(existsSync(join(repository, 'build'))).toBe(true)
})

test('a build refuses a link to the sources', () => {
  const repository = temporaryFolder()
  mkdirSync(join(repository, 'packages'))
  const link = join(temporaryFolder(), 'link')
  symlinkSync(join(repository, 'packages'), link)

  expect(() => takeFolder(link, repository)).toThrow(/^expected a folder outside of /)
})
