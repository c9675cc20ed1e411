import { readFileSync } from 'node:fs'

import {
  ATTEMPT_OUTCOMES,
  FINDING_KINDS,
  ROLES,
  RUN_REASONS,
  RUN_STATES,
  RUN_TRIGGERS,
  RUN_WAITS,
  SCHEDULE_CHANGES,
  STORED_SCHEDULE_STATES,
} from '@carillon/api'
import { CADENCE_KINDS } from '@carillon/cadence/words'
import { expect, test } from 'vitest'

/** The schema that all migrations create. Another test compares this file with a migrated database. */
const SCHEMA = readFileSync(new URL('../db/schema.sql', import.meta.url), 'utf8')

/** The values of every enumerated type of the database, in their order. */
function enumerations(): Record<string, string[]> {
  const types = SCHEMA.matchAll(/^create type (\w+) as enum \(([^)]*)\);$/gm)
  return Object.fromEntries(
    [...types].map(([, type = '', list = '']) => [type, [...list.matchAll(/'(\w+)'/g)].map(([, word = '']) => word)]),
  )
}

test("every closed list of the contract equals the database's, in the same order, and the database has no other", () => {
  expect(enumerations()).toEqual({
    attempt_outcome: [...ATTEMPT_OUTCOMES],
    cadence_kind: [...CADENCE_KINDS],
    feed_kind: ['run', 'schedule'],
    finding_kind: [...FINDING_KINDS],
    role: [...ROLES],
    run_reason: [...RUN_REASONS],
    run_state: [...RUN_STATES],
    run_trigger: [...RUN_TRIGGERS],
    run_wait: [...RUN_WAITS],
    schedule_change: [...SCHEDULE_CHANGES],
    schedule_state: [...STORED_SCHEDULE_STATES],
  })
})
