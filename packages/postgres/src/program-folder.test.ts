import { existsSync, mkdirSync, mkdtempSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { linkLibraries } from './program-folder.ts'

test('linkLibraries creates the listed symbolic links, and a second call changes nothing', () => {
  const folder = mkdtempSync(join(tmpdir(), 'carillon-links-'))
  mkdirSync(join(folder, 'native/lib'), { recursive: true })
  writeFileSync(join(folder, 'native/lib/libpq.so.5.18'), '')
  const links = [{ source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so.5' }]
  writeFileSync(join(folder, 'native/pg-symlinks.json'), JSON.stringify(links))

  linkLibraries(folder)
  linkLibraries(folder)

  expect(readlinkSync(join(folder, 'native/lib/libpq.so.5'))).toBe('libpq.so.5.18')
  rmSync(folder, { recursive: true })
})

test('linkLibraries does nothing if the package has no list of links', () => {
  const folder = mkdtempSync(join(tmpdir(), 'carillon-links-'))

  linkLibraries(folder)

  expect(existsSync(join(folder, 'native'))).toBe(false)
  rmSync(folder, { recursive: true })
})
