import { expect, test } from 'vitest'

import { migrate, migrateDown } from '../../src/db/migrate.ts'
import { dumpSchema } from '../../src/db/schema-check.ts'
import { createDatabase } from '../database.ts'

const BEFORE = 16
const AFTER = 17

test('migrating down from 0017 restores the schema of 0016, and up again that of 0017', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const { pool } = database
  await migrate(pool, { to: BEFORE })
  const before = await dumpSchema(pool)
  await migrate(pool, { to: AFTER })
  const after = await dumpSchema(pool)

  await migrateDown(pool, { to: BEFORE })
  expect(await dumpSchema(pool)).toBe(before)
  await migrate(pool, { to: AFTER })
  expect(await dumpSchema(pool)).toBe(after)
})

test('a month that is older than 0017 gets its transcripts when it is ensured, and is dropped whether it has them or not', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const { pool } = database
  await migrate(pool, { to: BEFORE })
  await pool.query(`
    select carillon.create_month('runs', '2024-01-01'), carillon.create_month('attempts', '2024-01-01'),
      carillon.create_month('runs', '2024-02-01'), carillon.create_month('attempts', '2024-02-01')`)

  await migrate(pool, { to: AFTER })
  await pool.query(`select carillon.create_month('transcripts', '2024-02-01')`)

  const { rows } = await pool.query(
    `select carillon.drop_month('2024-01-01') as without, carillon.drop_month('2024-02-01') as with`,
  )
  expect(rows).toEqual([{ without: true, with: true }])
  const left = await pool.query(`select from pg_class where relname like '%\\_2024\\_%' and relkind = 'r'`)
  expect(left.rowCount).toBe(0)
})
