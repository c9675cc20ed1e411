import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { migrate, migrateDown, migrationStatus } from '../../src/db/migrate.ts'
import { type Migration, readMigrations } from '../../src/db/migration-history.ts'
import { createPool } from '../../src/db/pool.ts'
import { dumpSchema } from '../../src/db/schema-check.ts'
import { createDatabase } from '../database.ts'

const ALL = readMigrations().map(({ name }) => name)

function migration(number: number, up: string, down = 'select 1'): Migration {
  return { number, name: `000${number}_made_up`, up, down, checksum: up }
}

test('an empty database gets every migration once, and no schema but carillon', async () => {
  await using database = await createDatabase({ content: 'empty' })
  expect(await migrationStatus(database.pool)).toEqual({ applied: [], pending: ALL })

  expect(await migrate(database.pool)).toEqual({ applied: ALL })
  expect(await migrate(database.pool)).toEqual({ applied: [] })

  const { rows } = await database.pool.query(
    `select nspname from pg_namespace where nspname !~ '^pg_' and nspname not in ('public', 'information_schema')`,
  )
  expect(rows).toEqual([{ nspname: 'carillon' }])
  const { applied, pending } = await migrationStatus(database.pool)
  expect(applied.map(({ name }) => name)).toEqual(ALL)
  expect(pending).toEqual([])
})

test('migrating down removes everything, partitions included, and migrating up again creates the same schema', async () => {
  await using database = await createDatabase()
  const before = await dumpSchema(database.pool)

  expect(await migrateDown(database.pool, { to: 0 })).toEqual({ reverted: ALL.toReversed() })
  const { rows } = await database.pool.query(
    `select nspname from pg_namespace where nspname = 'carillon'
     union all select typname from pg_type where typnamespace = 'public'::regnamespace`,
  )
  expect(rows).toEqual([])

  await migrate(database.pool)
  expect(await dumpSchema(database.pool)).toBe(before)
})

test('several processes that migrate at the same time apply each migration once', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const pools = Array.from({ length: 4 }, () => createPool({ connectionString: database.url, maxConnections: 1 }))

  const results = await Promise.all(pools.map((pool) => migrate(pool)))

  expect(results.flatMap(({ applied }) => applied).toSorted()).toEqual(ALL)
  await Promise.all(pools.map((pool) => pool.end()))
})

test('a migration that waits for the lock of a table does not block its writers for long, and is applied later', async () => {
  await using database = await createDatabase()
  await migrateDown(database.pool, { to: 1 })
  const reader = await database.pool.connect()
  await reader.query('begin; lock table carillon.workers in access share mode')

  const migrating = migrate(database.pool)
  const waiting = `select from pg_locks where not granted and relation = 'carillon.workers'::regclass`
  while ((await reader.query(waiting)).rowCount === 0);
  // This delete waits behind the migration, which waits for the reader. Its lock timeout is 5 s, that of the migration 1 s.
  await database.pool.query('delete from carillon.workers')
  await reader.query('commit')
  reader.release()

  expect(await migrating).toEqual({ applied: ALL.slice(1) })
})

test('a migration that fails is rolled back, and the migrations before it stay applied', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const migrations = [
    migration(1, 'create table carillon.first (id int)'),
    migration(2, 'create table carillon.second (id int); select 1 / 0'),
  ]

  await expect(migrate(database.pool, { migrations })).rejects.toMatchObject({ code: '22012' })

  expect(await migrationStatus(database.pool, { migrations })).toMatchObject({
    applied: [{ number: 1 }],
    pending: ['0002_made_up'],
  })
  const { rows } = await database.pool.query(`select to_regclass('carillon.second') as second`)
  expect(rows).toEqual([{ second: null }])
})

test('migrating up and down stops at the given migration', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const migrations = [1, 2, 3].map((number) =>
    migration(number, `create table carillon.t${number} ()`, `drop table carillon.t${number}`),
  )

  expect(await migrate(database.pool, { migrations, to: 2 })).toEqual({ applied: ['0001_made_up', '0002_made_up'] })
  expect(await migrateDown(database.pool, { migrations, to: 1 })).toEqual({ reverted: ['0002_made_up'] })

  const { rows } = await database.pool.query(
    `select to_regclass('carillon.t1')::text as t1, to_regclass('carillon.t2')::text as t2`,
  )
  expect(rows).toEqual([{ t1: 'carillon.t1', t2: null }])
  await expect(migrate(database.pool, { migrations, to: 4 })).rejects.toMatchObject({ code: 'invalid_input' })
})

test('a migration that was changed after it was applied is rejected', async () => {
  await using database = await createDatabase({ content: 'empty' })
  await migrate(database.pool, { migrations: [migration(1, 'select 1')] })

  await expect(migrate(database.pool, { migrations: [migration(1, 'select 2')] })).rejects.toMatchObject({
    code: 'schema_changed',
    message: expect.stringContaining('0001_made_up was changed') as string,
  })
})

test('a database that is newer than the code is rejected', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const migrations = [migration(1, 'select 1'), migration(2, 'select 2')]
  await migrate(database.pool, { migrations })

  for (const act of [migrate, migrationStatus]) {
    await expect(act(database.pool, { migrations: migrations.slice(0, 1) })).rejects.toMatchObject({
      code: 'schema_too_new',
    })
  }
})

test('a database that lacks a migration before its last one is rejected', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const migrations = [migration(1, 'select 1'), migration(2, 'select 2')]
  await migrate(database.pool, { migrations })
  await database.pool.query('delete from carillon.migrations where number = 1')

  await expect(migrate(database.pool, { migrations })).rejects.toMatchObject({
    code: 'schema_changed',
    message: expect.stringContaining('gap') as string,
  })
})

test('migration files with a gap between their numbers are rejected, and line endings do not change a checksum', () => {
  const folder = mkdtempSync(join(tmpdir(), 'carillon-migrations-'))
  const write = (file: string, text: string): void => writeFileSync(join(folder, file), text)
  write('0001_a.up.sql', 'select 1;\nselect 2;\n')
  write('0001_a.down.sql', '')
  const [unix] = readMigrations(folder)
  write('0001_a.up.sql', 'select 1;\r\nselect 2;\r\n')
  const [windows] = readMigrations(folder)
  cpSync(join(folder, '0001_a.up.sql'), join(folder, '0003_c.up.sql'))
  cpSync(join(folder, '0001_a.down.sql'), join(folder, '0003_c.down.sql'))

  expect(windows?.checksum).toBe(unix?.checksum)
  expect(() => readMigrations(folder)).toThrow('migration 0003_c leaves a gap')
  rmSync(folder, { recursive: true })
})
