import { join } from 'node:path'

import { expect, test } from 'vitest'

import { dumpSchema } from '../../src/db/schema-check.ts'
import { createDatabase } from '../database.ts'

// `npm run schema` runs this file with `--update`, which writes the file instead of comparing it.
const SCHEMA = join(import.meta.dirname, '../../src/db/schema.sql')

test('schema.sql equals what the migrations create; if not, run `npm run schema` and review the difference', async () => {
  await using database = await createDatabase()

  await expect(await dumpSchema(database.pool)).toMatchFileSnapshot(SCHEMA)
})
