import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { openSecretsKeys } from '../../src/start/keys.ts'
import { readSettings } from '../../src/start/settings.ts'
import { createFolder } from './folder.ts'

const KEY = Buffer.alloc(32, 251)
const OTHER = Buffer.alloc(32, 7)

test('beside an embedded Postgres a key for secrets is created once, is readable by its owner only, and is used again', () => {
  const dataDir = join(createFolder(), 'data')
  const settings = readSettings({ CARILLON_DATA_DIR: dataDir })

  const keys = openSecretsKeys(settings)

  expect(keys).toMatchObject([{ length: 32 }])
  expect(openSecretsKeys(settings)).toEqual(keys)
  expect(statSync(join(dataDir, 'secrets.key')).mode & 0o777).toBe(0o600)
  expect(readFileSync(join(dataDir, 'secrets.key'), 'utf8')).toBe(`${keys?.[0]?.toString('base64')}\n`)
})

test('a file without a valid key is refused, and is neither quoted nor replaced, because no other key decrypts the secrets', () => {
  const dataDir = join(createFolder(), 'data')
  const settings = readSettings({ CARILLON_DATA_DIR: dataDir })
  openSecretsKeys(settings)
  const file = join(dataDir, 'secrets.key')
  writeFileSync(file, 'half-a-key')

  expect(() => openSecretsKeys(settings)).toThrow(
    `${file}: expected a key of 32 bytes in base64, got something else: restore the file from a backup, or set CARILLON_SECRETS_KEY`,
  )
  expect(readFileSync(file, 'utf8')).toBe('half-a-key')
})

test('keys in the settings are used in their order, in either alphabet of base64', () => {
  const text = `${KEY.toString('base64url')}, ${OTHER.toString('base64')}`

  expect(openSecretsKeys(readSettings({ CARILLON_SECRETS_KEY: text }))).toEqual([KEY, OTHER])
})

test('on a shared Postgres there is no key unless the settings have one', () => {
  expect(openSecretsKeys(readSettings({ DATABASE_URL: 'postgres://db/carillon' }))).toBeNull()
})

test.each(['canary', `${KEY.toString('base64')},`, KEY.toString('hex'), Buffer.alloc(31).toString('base64')])(
  'the invalid key %j is refused with the name of the variable, and is not quoted',
  (text) => {
    expect(() => readSettings({ CARILLON_SECRETS_KEY: text })).toThrow(
      'CARILLON_SECRETS_KEY: expected comma-separated keys of 32 bytes each in base64, got something else',
    )
  },
)
