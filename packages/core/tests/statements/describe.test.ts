import { afterAll, beforeAll, expect, test } from 'vitest'

import { columns, instant, integer, json, smallint, text, textOf, uuid, word } from '../../src/db/columns.ts'
import { sql, type Sql } from '../../src/db/sql.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { DescribingDb } from './describe.ts'

const TRIGGERS = ['schedule', 'manual'] as const

let database: TestDatabase
beforeAll(async () => {
  database = await createDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

async function faultsOf(statement: Sql): Promise<readonly string[]> {
  const describing = await DescribingDb.connect(database.url)
  await statement.execute(describing)
  await describing.end()
  return describing.mismatches.flatMap(({ faults }) => faults)
}

test.each<[string, Parameters<typeof columns>[1], string[]]>([
  ['another type than the table has', { attemptCount: integer }, ['attemptCount: states integer, returns smallint']],
  ['no null where the table allows one', { error: json() }, ['error: may be null in its table']],
  [
    'that a column is present which never is null',
    { id: uuid.present },
    ['id: is present, but never null in its table'],
  ],
  [
    'that a computed column is present',
    { id: text.present.as(sql`runs.id::text`) },
    ['id: is present, but no column of a table'],
  ],
  [
    'fewer words than the enum has',
    { trigger: word('run_trigger', ['manual']) },
    ['trigger: does not state the word schedule'],
  ],
  [
    'a word that the enum has not',
    { trigger: word('run_trigger', [...TRIGGERS, 'other']) },
    ['trigger: states the word other, which Postgres does not know'],
  ],
  [
    'no words of an enum',
    { trigger: textOf<'manual'>() },
    [
      'trigger: states text, returns run_trigger',
      ...TRIGGERS.map((found) => `trigger: does not state the word ${found}`),
    ],
  ],
  ['a column that the table has not', { fault: text }, ['column runs.fault does not exist']],
])('a statement that states %s is reported', async (_what, stated, faults) => {
  expect(await faultsOf(sql`select ${columns('runs', stated)} from runs`)).toEqual(faults)
})

test('a statement is reported that returns more columns than it states, other names, or one name twice', async () => {
  const id = columns('runs', { id: uuid })

  expect(await faultsOf(sql`select ${id}, runs.lane from runs`)).toEqual(['states 1 columns, returns 2'])
  expect(await faultsOf(sql`select runs.lane, ${id} from runs`)).toEqual([
    'states 1 columns, returns 2',
    'states id, returns lane',
  ])
  expect(await faultsOf(sql`select ${id.with('runs', { id: uuid })} from runs`)).toEqual(['states id twice'])
})

test('a statement is not reported that states what Postgres returns', async () => {
  const stated = columns('runs', {
    scheduledFor: instant,
    attemptCount: smallint.orNull,
    workerId: uuid.present,
    lane: text.orNull,
    trigger: word('run_trigger', TRIGGERS).only(['manual']),
    source: textOf<'slot'>().as(sql`'slot'`),
  })

  expect(await faultsOf(sql`select ${stated} from runs`)).toEqual([])
})
