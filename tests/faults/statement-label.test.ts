import { expect, test } from 'vitest'

import { isWriting, labelOf } from './statement-label.ts'

const TAKE = `
  with due as materialized (
    select runs.schedule_id from carillon.runs where runs.due_at <= now() for update of runs skip locked -- never waited for
  ), taken as (
    update carillon.runs set state = 'running', worker_id = $1 from due where runs.schedule_id = due.schedule_id
    returning runs.id
  )
  select taken.id from taken join carillon.schedules on true`

test.each([
  ['a short statement is its own label', 'SELECT  1;', 'select 1'],
  [
    'the label of a long statement names its CTEs, and the tables that it writes and reads',
    TAKE,
    'with due taken: update runs, read schedules #',
  ],
])('%s', (_name, text, label) => {
  expect(labelOf(text)).toContain(label)
})

test('whitespace, comments, literals and the length of a parameter list do not change a label', () => {
  expect(labelOf(TAKE.replace('-- never waited for', '').replaceAll(/\s+/g, '  '))).toBe(labelOf(TAKE))
  expect(labelOf(TAKE.replace('running', 'pending'))).toBe(labelOf(TAKE))
  expect(labelOf('select $1, $2')).toBe(labelOf('select $1, $2, $3'))
})

test('two statements over the same tables have different labels', () => {
  expect(labelOf(TAKE.replace('<= now()', '> now()'))).not.toBe(labelOf(TAKE))
})

test.each([
  ['update carillon.runs set state = $1', true],
  ['insert into carillon.runs values ($1)', true],
  ['delete from carillon.runs', true],
  ['select id from carillon.runs for update', false],
  ['select id from carillon.runs for update of runs skip locked', false],
])('the statement %s is a write: %s', (text, expected) => {
  expect(isWriting(text)).toBe(expected)
})
