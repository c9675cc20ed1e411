import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { makeDirectory } from '../src/make-directory.ts'

test('a folder is made with those above it, once, and as open as it was asked for', () => {
  const root = mkdtempSync(join(tmpdir(), 'carillon-directory-'))
  const path = join(root, 'a/b/c')

  const made = [makeDirectory(path, 0o700), makeDirectory(path, 0o700)]

  expect(made).toEqual([true, false])
  expect([path, join(root, 'a')].map((folder) => statSync(folder).mode & 0o777)).toEqual([0o700, 0o700])
  rmSync(root, { recursive: true })
})

test('where no folder can be made it says so, and does not try for ever', () => {
  // Below /dev/null nothing can be; below /proc the system says that what exists is not there.
  expect(() => makeDirectory('/dev/null/a/b')).toThrow(/ENOTDIR|ENOENT/)
  expect(() => makeDirectory('/proc/carillon/a')).toThrow(/ENOENT|EACCES|ENOTDIR|EROFS/)
})
