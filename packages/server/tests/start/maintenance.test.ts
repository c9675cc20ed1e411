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

/** Whether a Postgres runs on a data directory. */
function isServed(dataDir: string): boolean {
  return existsSync(join(dataDir, 'postgres', 'postmaster.pid'))
}

test('the schema of a database is brought up, told and taken back', async () => {
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

test('a doctor examines a database that DATABASE_URL names', async () => {
  const { settings } = await createEmpty()
  expect(await examine(settings)).toContainEqual(expect.objectContaining({ name: 'schema', status: 'failed' }))

  await migrationsOf(settings).up()

  const checks = await examine(settings)
  // A busy machine answers slowly, and the doctor warns of it.
  expect(checks.find(({ name }) => name === 'database')?.status).toMatch(/^(ok|warning)$/)
  expect(checks.find(({ name }) => name === 'schema')).toMatchObject({ status: 'ok' })
})

test('an installation that is not running is looked at by starting its Postgres for as long as it takes', async () => {
  const dataDir = join(createFolder(), 'data')
  const settings = readSettings({}, { dataDir })

  const { applied } = await migrationsOf(settings).up()

  expect(applied[0]).toMatch(/^0001_/)
  expect(isServed(dataDir)).toBe(false)
  expect(await examine(settings)).toContainEqual(expect.objectContaining({ name: 'schema', status: 'ok' }))
  expect(isServed(dataDir)).toBe(false)
})

test('an installation that is running is looked at through the Postgres that runs, which goes on', async () => {
  const directory = openDataDirectory(join(createFolder(), 'data'))
  const settings = readSettings({}, { dataDir: directory.path })
  await using running = await startPostgres({ dataDir: directory.postgresDir, settings: { fsync: 'off' } })

  const { pending } = await migrationsOf(settings).status()
  await migrationsOf(settings).up()

  expect(pending[0]).toMatch(/^0001_/)
  expect(await examine(settings)).toContainEqual(expect.objectContaining({ name: 'schema', status: 'ok' }))
  expect(findRunningPostgres(directory.postgresDir)).toMatchObject({ url: running.url })
})

test('where nothing was ever started there is nothing to look at, and nothing is made', async () => {
  const dataDir = join(createFolder(), 'data')
  const settings = readSettings({}, { dataDir })
  const message =
    `there is no data directory at ${dataDir}: \`carillon up\` makes one, ` +
    'CARILLON_DATA_DIR names another, and DATABASE_URL a database elsewhere'

  await expect(migrationsOf(settings).status()).rejects.toMatchObject({ code: 'data_directory_missing', message })
  await expect(migrationsOf(settings).down(0)).rejects.toMatchObject({ code: 'data_directory_missing' })
  expect(await examine(settings)).toEqual([{ name: 'database', status: 'failed', message }])
  expect(existsSync(dataDir)).toBe(false)
})

test('what cannot be reached has failed, in one sentence', async () => {
  const { path } = openDataDirectory(join(createFolder(), 'data'))
  mkdirSync(join(path, 'postgres'))
  writeFileSync(join(path, 'postgres', 'PG_VERSION'), '15\n')

  expect(await examine(readSettings({}, { dataDir: path }))).toEqual([
    {
      name: 'database',
      status: 'failed',
      message:
        `the data directory ${path}/postgres was made by Postgres 15, but this is Postgres 18: ` +
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
