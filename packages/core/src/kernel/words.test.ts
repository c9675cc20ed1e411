import { readFileSync } from 'node:fs'

import { RUN_REASONS, RUN_STATES, SCHEDULE_CHANGES, STORED_SCHEDULE_STATES } from '@carillon/api'
import { expect, test } from 'vitest'

const MIGRATION = readFileSync(new URL('../db/migrations/0001_schedules_and_ledger.up.sql', import.meta.url), 'utf8')

/** The values of an enumerated type, as the database knows them. */
function valuesOf(type: string): string[] {
  const list = new RegExp(String.raw`carillon\.${type} as enum\s*\(([^)]*)\)`).exec(MIGRATION)?.[1] ?? ''
  return [...list.matchAll(/'(\w+)'/g)].map((match) => match[1] ?? '')
}

test('states and reasons are those of the ledger, in its order', () => {
  expect(valuesOf('run_state')).toEqual([...RUN_STATES])
  expect(valuesOf('run_reason')).toEqual([...RUN_REASONS])
  expect(valuesOf('schedule_state')).toEqual([...STORED_SCHEDULE_STATES])
})

test('the first changes of a schedule are those of the ledger, in its order', () => {
  const first = valuesOf('schedule_change')

  expect(SCHEDULE_CHANGES.slice(0, first.length)).toEqual(first)
})
