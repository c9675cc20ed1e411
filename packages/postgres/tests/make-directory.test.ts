import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { makeDirectory } from '../src/make-directory.ts'

test('a folder is created with its parents, once, with the given mode', () => {
  const root = mkdtempSync(join(tmpdir(), 'carillon-directory-'))
  const path = join(root, 'a/b/c')

  const made = [makeDirectory(path, 0o700), makeDirectory(path, 0o700)]

  expect(made).toEqual([true, false])
  expect([path, join(root, 'a')].map((folder) => statSync(folder).mode & 0o777)).toEqual([0o700, 0o700])
  rmSync(root, { recursive: true })
})

test('a folder that cannot be created throws, and the call ends', () => {
  // Nothing can exist below /dev/null. Below /proc the system reports existing folders as missing.
  expect(() => makeDirectory('/dev/null/a/b')).toThrow(/ENOTDIR|ENOENT/)
  expect(() => makeDirectory('/proc/carillon/a')).toThrow(/ENOENT|EACCES|ENOTDIR|EROFS/)
})
