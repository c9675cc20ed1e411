import { expect, test } from 'vitest'

import { columns, integer, text, type ColumnList } from '../../src/db/columns.ts'
import { RUN_COLUMNS } from '../../src/db/shared-columns.ts'
import { sql } from '../../src/db/sql.ts'
import { Pipeline } from '../pipeline.ts'
import { refuseUndeclaredNulls } from './declared-nulls.ts'

const ANSWER = columns('answer', { count: integer, note: text.orNull })
const STATEMENT = sql`select ${ANSWER} from answer`.compile()

test('a null in a column that is not declared orNull is refused, whichever row has it', () => {
  const rows = [
    { count: 1, note: 'one' },
    { count: null, note: 'two' },
  ]

  expect(() => refuseUndeclaredNulls(STATEMENT, { rows })).toThrow(
    'count is null, but its column is not declared orNull, in: select answer.count, answer.note from answer',
  )
})

test.each([
  ['a null in a column that is declared orNull', STATEMENT, { count: 1, note: null }],
  ['a row of another statement of the same message', STATEMENT, { other: null }],
  ['a null of a statement that states no columns', { text: 'select 1', parameters: [] }, { count: null }],
])('%s is accepted', (_what, statement, row) => {
  expect(() => refuseUndeclaredNulls(statement, { rows: [row] })).not.toThrow()
})

test('all columns of a list may be null where an outer join may find no row, and those of another table may not', () => {
  const item = RUN_COLUMNS.orNull.with('items', { ordinal: integer })
  const refuse = (list: ColumnList, row: object) => () =>
    refuseUndeclaredNulls(sql`select ${list}`.compile(), { rows: [row] })

  expect(refuse(item, { id: null, ordinal: 1 })).not.toThrow()
  expect(refuse(item, { id: null, ordinal: null })).toThrow('ordinal is null')
  expect(refuse(RUN_COLUMNS, { id: null })).toThrow('id is null')
})

test('the databases of a pipeline refuse undeclared nulls', async () => {
  await using pipeline = await Pipeline.at('2026-03-02T09:00:00Z')
  const statement = sql`select ${columns('answer', { count: integer.as(sql`null::integer`) })}`

  await expect(statement.execute(pipeline.db)).rejects.toThrow('count is null')
  await expect(statement.execute(pipeline.workerDb)).rejects.toThrow('count is null')
})
