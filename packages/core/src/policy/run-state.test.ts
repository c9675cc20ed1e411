import { readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import { canTransition, isTerminal, RUN_REASONS, RUN_STATES, TERMINAL_STATES } from './run-state.ts'

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

test('these transitions exist, and no others', () => {
  const legal = RUN_STATES.flatMap((from) =>
    RUN_STATES.filter((to) => canTransition(from, to)).map((to) => `${from} → ${to}`),
  )

  expect(legal).toEqual([
    'pending → running',
    'pending → cancelled',
    'pending → skipped',
    'running → retrying',
    'running → succeeded',
    'running → failed',
    'running → cancelled',
    'retrying → running',
    'retrying → failed',
    'retrying → cancelled',
  ])
})

test('C-21: terminal states never change', () => {
  expect(RUN_STATES.filter(isTerminal)).toEqual([...TERMINAL_STATES])
  for (const from of TERMINAL_STATES) {
    expect([from, RUN_STATES.filter((to) => canTransition(from, to))]).toEqual([from, []])
  }
})

test('every state that is not terminal can still be cancelled', () => {
  for (const from of RUN_STATES.filter((state) => !isTerminal(state))) {
    expect([from, canTransition(from, 'cancelled')]).toEqual([from, true])
  }
})
