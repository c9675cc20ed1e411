import { expect, test } from 'vitest'

import { quotedArray } from '../../src/db/parameters.ts'
import { createDatabase } from '../database.ts'

test('quotedArray keeps every text unchanged on its way to Postgres', async () => {
  await using database = await createDatabase()
  const texts = [
    '',
    ' ',
    'a',
    'a',
    'NULL',
    '{}',
    '{a,b}',
    ',',
    '"',
    '\\',
    '\\"',
    "'",
    '\n',
    '\t',
    '\u{1f514}',
    'ä',
    'a',
    '$1',
  ]

  for (const given of [[], texts, texts.toReversed()]) {
    const { rows } = await database.pool.query<{ read: string[] }>('select $1::text[] as read', [quotedArray(given)])
    expect(rows).toEqual([{ read: given }])
  }
})
