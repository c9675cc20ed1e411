import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { createDatabase } from '@carillon/core/testing'
import { findRunningPostgres, startPostgres } from '@carillon/postgres'
import { expect, onTestFinished, test } from 'vitest'

import { openDataDirectory } from '../../src/start/data-directory.ts'
import { examine, migrationsOf } from '../../src/start/maintenance.ts'
import { readSettings } from '../../src/start/settings.ts'
import { createFolder } from './folder.ts'

async function createEmpty() {
  const database = await createDatabase({ content: 'empty' })
  onTestFinished(() => database[Symbol.asyncDispose]())
  return { database, settings: readSettings({}, { databaseUrl: database.url }) }
}

/** True if a Postgres runs on a data directory. */
function isServed(dataDir: string): boolean {
  return existsSync(join(dataDir, 'postgres', 'postmaster.pid'))
}

test('migrations are applied, listed and reverted', async () => {
  const { settings } = await createEmpty()
  const migrations = migrationsOf(settings)
  const { pending } = await migrations.status()

  expect(pending[0]).toMatch(/^0001_/)
  expect(await migrations.up()).toEqual({ applied: pending })
  expect(await migrations.up()).toEqual({ applied: [] })
  expect(await migrations.status()).toMatchObject({ applied: pending.map((name) => ({ name })), pending: [] })
  expect(await migrations.down(0)).toEqual({ reverted: pending.toReversed() })
  expect(await migrations.status()).toEqual({ applied: [], pending })
})

test('the doctor examines the database in DATABASE_URL', async () => {
  const { settings } = await createEmpty()
  expect(await examine(settings)).toContainEqual(expect.objectContaining({ name: 'schema', status: 'failed' }))

  await migrationsOf(settings).up()

  const checks = await examine(settings)
  // On a busy machine the database answers slowly, and the doctor warns of it.
  expect(checks.find(({ name }) => name === 'database')?.status).toMatch(/^(ok|warning)$/)
  expect(checks.find(({ name }) => name === 'schema')).toMatchObject({ status: 'ok' })
})

test('the commands start the Postgres of an installation that is not running, and stop it afterwards', async () => {
  const dataDir = join(createFolder(), 'data')
  const settings = readSettings({}, { dataDir })

  const { applied } = await migrationsOf(settings).up()

  expect(applied[0]).toMatch(/^0001_/)
  expect(isServed(dataDir)).toBe(false)
  expect(await examine(settings)).toContainEqual(expect.objectContaining({ name: 'schema', status: 'ok' }))
  expect(isServed(dataDir)).toBe(false)
})

test('the commands use the Postgres of an installation that is running, and leave it running', async () => {
  const directory = openDataDirectory(join(createFolder(), 'data'))
  const settings = readSettings({}, { dataDir: directory.path })
  await using running = await startPostgres({ dataDir: directory.postgresDir, settings: { fsync: 'off' } })

  const { pending } = await migrationsOf(settings).status()
  await migrationsOf(settings).up()

  expect(pending[0]).toMatch(/^0001_/)
  expect(await examine(settings)).toContainEqual(expect.objectContaining({ name: 'schema', status: 'ok' }))
  expect(findRunningPostgres(directory.postgresDir)).toMatchObject({ url: running.url })
})

test('without a data directory the commands fail and create nothing', async () => {
  const dataDir = join(createFolder(), 'data')
  const settings = readSettings({}, { dataDir })
  const message =
    `expected a data directory at ${dataDir}, got none: \`carillon up\` creates one, ` +
    'CARILLON_DATA_DIR names another, and DATABASE_URL names a database elsewhere'

  await expect(migrationsOf(settings).status()).rejects.toMatchObject({ code: 'data_directory_missing', message })
  await expect(migrationsOf(settings).down(0)).rejects.toMatchObject({ code: 'data_directory_missing' })
  expect(await examine(settings)).toEqual([{ name: 'database', status: 'failed', message }])
  expect(existsSync(dataDir)).toBe(false)
})

test('an unusable data directory is reported in one sentence', async () => {
  const { path } = openDataDirectory(join(createFolder(), 'data'))
  mkdirSync(join(path, 'postgres'))
  writeFileSync(join(path, 'postgres', 'PG_VERSION'), '15\n')

  expect(await examine(readSettings({}, { dataDir: path }))).toEqual([
    {
      name: 'database',
      status: 'failed',
      message:
        `expected a database of Postgres 18 in ${path}/postgres, got one of Postgres 15: ` +
        'dump it with the old version and restore it into a new directory',
    },
  ])
  await expect(migrationsOf(readSettings({}, { dataDir: path })).up()).rejects.toMatchObject({
    code: 'data_directory_outdated',
  })
  const foreign = createFolder()
  writeFileSync(join(foreign, 'thesis.txt'), '')
  await expect(migrationsOf(readSettings({}, { dataDir: foreign })).status()).rejects.toMatchObject({
    code: 'data_directory_foreign',
  })
  expect(readdirSync(foreign)).toEqual(['thesis.txt'])
})
