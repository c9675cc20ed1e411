import { MISSED_POLICIES } from '@carillon/api'
import { expect, test } from 'vitest'

import { decideMissed } from './missed.ts'

const SLOT = Date.UTC(2026, 0, 5, 9)
const MINUTE = 60_000
const EARLIER = [SLOT - 2 * MINUTE, SLOT - MINUTE]

function decide(fields: Partial<Parameters<typeof decideMissed>[0]>) {
  return decideMissed({
    due: [SLOT],
    now: SLOT,
    policy: 'skip',
    startingDeadlineSeconds: 300,
    spreadOffsetMs: 0,
    ...fields,
  })
}

test('the policies are skip and run_once', () => {
  expect(MISSED_POLICIES).toEqual(['skip', 'run_once'])
})

test.each([
  ['at its instant', 0, SLOT],
  ['milliseconds late', 3, SLOT],
  ['exactly as late as its deadline', 300_000, SLOT],
  ['a millisecond later than its deadline', 300_001, null],
  ['hours late', 7_200_000, null],
])('skip: a slot that a worker finds %s runs or is missed', (_, latenessMs, run) => {
  expect(decide({ now: SLOT + latenessMs })).toEqual({ missed: run === null ? [SLOT] : [], run })
})

test.each([0, 300_001, 30 * 86_400_000])('run_once: a slot runs even %i ms late', (latenessMs) => {
  expect(decide({ policy: 'run_once', now: SLOT + latenessMs })).toEqual({ missed: [], run: SLOT })
})

test.each(MISSED_POLICIES)(
  'I11, %s: only the latest of several due slots runs, and the others are missed',
  (policy) => {
    expect(decide({ policy, due: [...EARLIER, SLOT] })).toEqual({ missed: EARLIER, run: SLOT })
  },
)

test('skip: after a long outage all due slots are missed', () => {
  const due = [...EARLIER, SLOT]

  expect(decide({ due, now: SLOT + 300_001 })).toEqual({ missed: due, run: null })
})

test('lateness counts from the instant at which a slot comes due by its spread, not from its nominal instant', () => {
  expect(decide({ spreadOffsetMs: 3_000_000, now: SLOT + 3_300_000 }).run).toBe(SLOT)
  expect(decide({ spreadOffsetMs: 3_000_000, now: SLOT + 3_300_001 }).run).toBeNull()
})

test('under a deadline of 0 a slot that is a millisecond late is missed', () => {
  expect(decide({ startingDeadlineSeconds: 0 }).run).toBe(SLOT)
  expect(decide({ startingDeadlineSeconds: 0, now: SLOT + 1 }).run).toBeNull()
})

test('without a due slot nothing runs and nothing is missed', () => {
  expect(decide({ due: [] })).toEqual({ missed: [], run: null })
})
