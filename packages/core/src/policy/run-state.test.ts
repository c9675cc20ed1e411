import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { RUN_REASONS, RUN_STATES } from './run-state.ts'

const MIGRATION = readFileSync(new URL('../store/migrations/0001_schedules_and_ledger.up.sql', import.meta.url), 'utf8')

/** The values of an enumerated type, as the database knows them. */
function valuesOf(type: string): string[] {
  const list = new RegExp(String.raw`carillon\.${type} as enum\s*\(([^)]*)\)`).exec(MIGRATION)?.[1] ?? ''
  return [...list.matchAll(/'(\w+)'/g)].map((match) => match[1] ?? '')
}

test('states and reasons are those of the ledger, in its order', () => {
  expect(valuesOf('run_state')).toEqual([...RUN_STATES])
  expect(valuesOf('run_reason')).toEqual([...RUN_REASONS])
})
