import { expect, test } from 'vitest'

import { migrate, migrateDown } from '../../src/db/migrate.ts'
import { dumpSchema } from '../../src/db/schema-check.ts'
import { createDatabase } from '../database.ts'

const BEFORE = 12
const AFTER = 13

test('migrating down from 0013 restores the schema of 0012, and up again that of 0013', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const { pool } = database
  await migrate(pool, { to: BEFORE })
  const before = await dumpSchema(pool)
  await migrate(pool, { to: AFTER })
  const after = await dumpSchema(pool)
  expect(after).not.toBe(before)

  await migrateDown(pool, { to: BEFORE })
  expect(await dumpSchema(pool)).toBe(before)
  await migrate(pool, { to: AFTER })
  expect(await dumpSchema(pool)).toBe(after)
})
