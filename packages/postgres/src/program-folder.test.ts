import { existsSync, mkdirSync, mkdtempSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { linkLibraries } from './program-folder.ts'

test('links that npm could not deliver are made where the list says, and twice does no harm', () => {
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

test('a system whose libraries need no links has no list of them', () => {
  const folder = mkdtempSync(join(tmpdir(), 'carillon-links-'))

  linkLibraries(folder)

  expect(existsSync(join(folder, 'native'))).toBe(false)
  rmSync(folder, { recursive: true })
})
