import { join } from 'node:path'

import { expect, test } from 'vitest'

import { createDb } from '../../src/store/database.ts'
import { dumpSchema } from '../../src/store/schema-dump.ts'
import { createDatabase } from '../database.ts'
import { generateTypes } from './schema-types.ts'

// `npm run schema` runs this file with `--update`, which writes what it otherwise compares.
const STORE = join(import.meta.dirname, '../../src/store')

test('schema.sql is what the migrations make; if not, run `npm run schema` and review the difference', async () => {
  await using database = await createDatabase()

  await expect(await dumpSchema(database.pool)).toMatchFileSnapshot(join(STORE, 'schema.sql'))
})

test('schema.generated.ts is what the migrations make; if not, run `npm run schema` and review the difference', async () => {
  await using database = await createDatabase()

  await expect(await generateTypes(createDb(database.pool))).toMatchFileSnapshot(join(STORE, 'schema.generated.ts'))
})
