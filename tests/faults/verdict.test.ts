import { describe, expect, test } from 'vitest'

import type { ChangeRow, Ledger, RunRow } from './ledger.ts'
import { gridOf, nameOf, slotsBetween } from './schedule-name.ts'
import { recoveryTimes, type Call } from './target-server.ts'
import { judge } from './verdict.ts'
import { WaitTracker } from './wait-watch.ts'

const START = Date.parse('2026-03-02T09:00:00Z')
const GRID = { everyMs: 2000, anchorMs: START }
const SCHEDULE = 'schedule-1'

function lineAt(slot: number, changed: Partial<RunRow> = {}): RunRow {
  const scheduledFor = START + slot
  return {
    id: `run-${slot}`,
    scheduleId: SCHEDULE,
    scheduledFor,
    trigger: 'schedule',
    state: 'succeeded',
    attemptCount: 1,
    completedAt: scheduledFor + 100,
    ...changed,
  }
}

function callAt(slot: number, changed: Partial<Call> = {}): Call {
  const scheduledFor = START + slot
  return {
    key: `sched:${SCHEDULE}:${scheduledFor}`,
    scheduleId: SCHEDULE,
    scheduledFor,
    runId: `run-${slot}`,
    attempt: 1,
    arrivedAt: scheduledFor + 10,
    answeredAt: scheduledFor + 50,
    status: 200,
    brokenAt: null,
    ...changed,
  }
}

function changeAt(instant: number, change: string, nextSlot: number | null): ChangeRow {
  const nextSlotAt = nextSlot === null ? null : START + nextSlot
  return { scheduleId: SCHEDULE, change, changedAt: START + instant, nextSlotAt }
}

/** The schedule is created, paused, resumed and deleted. Its slots are due at 2, 4, 10 and 12 s. */
const CHANGES = [
  changeAt(500, 'created', 2000),
  changeAt(5000, 'paused', null),
  changeAt(9000, 'resumed', 10_000),
  changeAt(13_000, 'deleted', null),
]
const SLOTS = [2000, 4000, 10_000, 12_000]

function countsOf(runs: readonly RunRow[]): { runCount: number; failureCount: number } {
  const began = runs.filter(({ attemptCount }) => attemptCount > 0)
  return { runCount: began.length, failureCount: began.filter(({ state }) => state === 'failed').length }
}

function ledgerOf(runs: readonly RunRow[]): Ledger {
  const schedules = [{ id: SCHEDULE, name: nameOf('forbid quick', GRID), nextSlotAt: null, ...countsOf(runs) }]
  return { readAt: START + 60_000, schedules, changes: CHANGES, runs }
}

describe('the verdict', () => {
  test('finds no fault if each slot that came due has one line and one call', () => {
    const verdict = judge(
      ledgerOf(SLOTS.map((slot) => lineAt(slot))),
      SLOTS.map((slot) => callAt(slot)),
    )

    expect(verdict).toEqual({
      slots: 4,
      calls: 4,
      succeeded: 4,
      lost: [],
      doubled: [],
      early: [],
      unexplained: [],
      miscounted: [],
      repeatedAttempts: 0,
    })
  })

  test.each(SLOTS)('finds the slot at %i ms lost if its line is missing', (missing) => {
    const left = SLOTS.filter((slot) => slot !== missing)

    const { lost } = judge(
      ledgerOf(left.map((slot) => lineAt(slot))),
      left.map((slot) => callAt(slot)),
    )

    expect(lost).toEqual([expect.stringContaining(new Date(START + missing).toISOString())])
  })

  test('does not count a manual run as the line of a slot', () => {
    const runs = SLOTS.map((slot) => lineAt(slot, slot === 4000 ? { trigger: 'manual' } : {}))

    const { lost } = judge(
      ledgerOf(runs),
      SLOTS.map((slot) => callAt(slot)),
    )

    expect(lost).toHaveLength(1)
  })

  test('finds a slot of an active schedule lost only if it is before the awaited slot', () => {
    const ledger = ledgerOf([])
    const [schedule] = ledger.schedules
    const active = {
      ...ledger,
      changes: CHANGES.slice(0, 1),
      schedules: schedule === undefined ? [] : [{ ...schedule, nextSlotAt: START + 6000 }],
    }

    expect(judge(active, []).lost).toHaveLength(2)
  })

  test('finds a slot lost that came due during an edit', () => {
    const changes = [changeAt(500, 'created', 2000), changeAt(3990, 'edited', 6000), changeAt(6500, 'deleted', null)]

    const { lost } = judge({ ...ledgerOf([lineAt(2000), lineAt(6000)]), changes }, [callAt(2000), callAt(6000)])

    expect(lost).toEqual([expect.stringContaining(new Date(START + 4000).toISOString())])
  })

  test('finds slots lost that a schedule skipped at its resume', () => {
    const changes = [changeAt(500, 'created', 2000), changeAt(1000, 'paused', null), changeAt(5000, 'resumed', 30_000)]

    const { lost } = judge({ ...ledgerOf([lineAt(30_000)]), changes, readAt: START + 31_000 }, [callAt(30_000)])

    expect(lost).toEqual([expect.stringContaining('awaited its first slot too late when it was resumed')])
  })

  test('finds a slot with two lines doubled', () => {
    const runs = [...SLOTS.map((slot) => lineAt(slot)), lineAt(4000, { id: 'other' })]

    const { doubled } = judge(ledgerOf(runs), [...SLOTS.map((slot) => callAt(slot)), callAt(4000, { runId: 'other' })])

    expect(doubled).toEqual([
      expect.stringContaining('has 2 lines'),
      expect.stringContaining('was called for the runs run-4000 and other'),
    ])
  })

  test('finds a run doubled that was called after its success was recorded', () => {
    const again = callAt(4000, { attempt: 2, arrivedAt: START + 4200 })

    const { doubled } = judge(ledgerOf(SLOTS.map((slot) => lineAt(slot))), [
      ...SLOTS.map((slot) => callAt(slot)),
      again,
    ])

    expect(doubled).toEqual(['run run-4000 was called (attempt 2) after its success was recorded'])
  })

  test('counts an attempt that was repeated before its run had ended, and does not find it doubled', () => {
    const again = callAt(4000, { arrivedAt: START + 4005 })

    const verdict = judge(ledgerOf(SLOTS.map((slot) => lineAt(slot))), [...SLOTS.map((slot) => callAt(slot)), again])

    expect(verdict).toMatchObject({ doubled: [], repeatedAttempts: 1 })
  })

  test.each([{ runCount: 5 }, { failureCount: 1 }])('finds a schedule with the wrong count %o', (wrong) => {
    const ledger = ledgerOf([...SLOTS.map((slot) => lineAt(slot)), lineAt(2000, { state: 'skipped', attemptCount: 0 })])
    const schedules = ledger.schedules.map((schedule) => ({ ...schedule, ...wrong }))

    expect(judge(ledger, []).miscounted).toEqual([])
    expect(judge({ ...ledger, schedules }, []).miscounted).toEqual([expect.stringContaining('its ledger has 4 and 0')])
  })

  test('finds a call before its slot', () => {
    const calls = SLOTS.map((slot) => callAt(slot, slot === 10_000 ? { arrivedAt: START + 9998 } : {}))

    const { early } = judge(ledgerOf(SLOTS.map((slot) => lineAt(slot))), calls)

    expect(early).toEqual([expect.stringContaining('2 ms before its slot')])
  })

  test('finds a line that is not a slot, and a success without a successful answer of the target', () => {
    const runs = [...SLOTS.map((slot) => lineAt(slot)), lineAt(2500, { state: 'skipped' })]
    const calls = SLOTS.map((slot) => callAt(slot, slot === 12_000 ? { status: 503 } : {}))

    const { unexplained } = judge(ledgerOf(runs), calls)

    expect(unexplained).toEqual([
      expect.stringContaining('which is no slot of it'),
      'run run-12000 succeeded without a successful answer of the target',
    ])
  })
})

test('the slots of a schedule can be computed from its name', () => {
  expect(slotsBetween(gridOf(nameOf('queue slow', GRID)), START - 5000, START + 4000)).toEqual([
    START,
    START + 2000,
    START + 4000,
  ])
})

test('the recovery time counts from the last loss of a run to its next attempt', () => {
  const lost = { answeredAt: null, status: null }
  const calls = [
    callAt(2000, { ...lost, brokenAt: START + 3000 }),
    callAt(2000, { ...lost, arrivedAt: START + 10_000, brokenAt: START + 11_000 }),
    callAt(2000, { arrivedAt: START + 15_000 }),
    callAt(4000),
    callAt(10_000, { ...lost, brokenAt: START + 10_500 }),
  ]

  expect(recoveryTimes(calls)).toEqual({ count: 2, p50: 7000, p99: 7000, longest: 7000 })
})

describe('the longest wait', () => {
  const row = (key: string, progress: string) => ({ key, progress, what: `run ${key}` })

  test('counts from the end of the faults for a run that does not change', () => {
    const tracker = new WaitTracker(START)
    tracker.note([row('a', 'retrying1'), row('b', 'running1')], START + 500)
    tracker.note([row('a', 'retrying1'), row('b', 'retrying1')], START + 20_000)
    tracker.note([row('a', 'retrying1'), row('b', 'retrying1'), row('c', 'pending0')], START + 31_000)

    expect(tracker.longest).toEqual({ what: 'run a', forMs: 31_000 })
    expect(tracker.waiting(START + 32_000)).toEqual([
      { what: 'run a', forMs: 32_000 },
      { what: 'run b', forMs: 12_000 },
      { what: 'run c', forMs: 1000 },
    ])
  })

  test('starts again when a run has its next attempt', () => {
    const tracker = new WaitTracker(START)
    for (const [attempt, instant] of [500, 10_000, 20_000, 30_000].entries()) {
      tracker.note([row('a', `running${attempt}`)], START + instant)
    }

    expect(tracker.longest.forMs).toBe(500)
  })
})
