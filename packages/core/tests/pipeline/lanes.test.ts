import { expect, test } from 'vitest'

import { lanesOf } from '../../src/policy/lane-names.ts'
import { createDatabase } from '../database.ts'

test('the lanes that Postgres assigns are exactly those that workers look at', async () => {
  await using database = await createDatabase()

  const { rows } = await database.pool.query<{ lane: string }>(
    `select distinct carillon.lane_of('test', 'tenant-' || n) as lane from generate_series(1, 10000) as n`,
  )

  expect(rows.map(({ lane }) => lane).toSorted()).toEqual(lanesOf(['test']).toSorted())
})

test('every tenant has a lane that workers look at, whatever its name', async () => {
  await using database = await createDatabase()
  const { rows } = await database.pool.query<{ lane: string }>(
    `select carillon.lane_of('http', tenant) as lane
     from unnest(array['', 'acme', 'Ümlaut', repeat('x', 200), E'a\\tb']) as tenant`,
  )

  for (const { lane } of rows) expect(lanesOf(['http'])).toContain(lane)
})
