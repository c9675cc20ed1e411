import { MISSED_POLICIES, OVERLAP_POLICIES, RUN_REASONS } from '@carillon/api'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import { decideBegin, type BeginDecision } from './begin.ts'
import { type OpenRun } from './overlap.ts'
import type { SchedulePolicy } from './schedule-policy.ts'

const MINUTE = 60_000
const T4 = Date.UTC(2026, 0, 5, 9)
const T3 = T4 - MINUTE
const T2 = T4 - 2 * MINUTE
const T1 = T4 - 3 * MINUTE

const POLICY: SchedulePolicy = {
  overlap: 'forbid',
  missed: 'skip',
  startingDeadlineSeconds: 300,
  retry: { maxAttempts: 3, baseSeconds: 1, capSeconds: 60 },
  autoPauseThreshold: 10,
  spreadSeconds: 0,
}

type Claimed = Parameters<typeof decideBegin>[0]
type Fields = Partial<Omit<Claimed, 'policy' | 'slots'>> & {
  due?: readonly number[]
  next?: number | null
  policy?: Partial<SchedulePolicy>
}

function begin({ due = [T4], next = null, policy, ...fields }: Fields = {}): BeginDecision {
  return decideBegin({
    slots: { due, next },
    excluded: new Set(),
    now: T4 + 2,
    policy: { ...POLICY, ...policy },
    spreadOffsetMs: 0,
    open: [],
    grantRefusal: null,
    ...fields,
  })
}

const RUNNING: OpenRun = { id: 'running', waitsFor: null, attemptCount: 1 }
const QUEUED: OpenRun = { id: 'queued', waitsFor: 'turn', attemptCount: 0 }
const UNTAKEN: OpenRun = { id: 'untaken', waitsFor: 'worker', attemptCount: 0 }
const RETRYING: OpenRun = { id: 'retrying', waitsFor: 'retry', attemptCount: 1 }

function decided(fields: Partial<BeginDecision>): BeginDecision {
  return { skipped: [], run: null, supersede: [], cancel: [], ...fields }
}

test('a slot that is in time and not blocked runs', () => {
  expect(begin({ next: T4 + MINUTE })).toEqual(decided({ run: { slot: T4, state: 'running' } }))
})

describe('excluded slots', () => {
  test('I6: are recorded and never run', () => {
    expect(begin({ excluded: new Set([T4]) })).toEqual(decided({ skipped: [{ slot: T4, reason: 'excluded' }] }))
  })

  test('are excluded rather than missed, and the latest other slot runs', () => {
    expect(begin({ due: [T1, T2, T3, T4], excluded: new Set([T2, T4]) })).toEqual(
      decided({
        skipped: [
          { slot: T1, reason: 'missed' },
          { slot: T2, reason: 'excluded' },
          { slot: T4, reason: 'excluded' },
        ],
        run: { slot: T3, state: 'running' },
      }),
    )
  })

  test('have no effect on another slot that is due earlier', () => {
    expect(begin({ excluded: new Set([T4 + MINUTE]) }).run).toEqual({ slot: T4, state: 'running' })
  })

  test('do not supersede a run that waits for its retry', () => {
    expect(begin({ excluded: new Set([T4]), open: [RETRYING] }).supersede).toEqual([])
  })
})

describe('missed slots', () => {
  test('I6, I11: are recorded, and only the latest due slot runs', () => {
    expect(begin({ due: [T1, T2, T4] })).toEqual(
      decided({
        skipped: [
          { slot: T1, reason: 'missed' },
          { slot: T2, reason: 'missed' },
        ],
        run: { slot: T4, state: 'running' },
      }),
    )
  })

  test('I11: do not run after an outage longer than the deadline, except the latest one under run_once', () => {
    const now = T4 + 300_001

    expect(begin({ due: [T3, T4], now }).run).toBeNull()
    expect(begin({ due: [T3, T4], now }).skipped).toHaveLength(2)
    expect(begin({ due: [T3, T4], now, policy: { missed: 'run_once' } }).run).toEqual({ slot: T4, state: 'running' })
  })

  test('I11: do not run if the next slot after their portion is due too, however close it is', () => {
    expect(begin({ due: [T2, T3], next: T4, now: T4, policy: { missed: 'run_once' } })).toEqual(
      decided({
        skipped: [
          { slot: T2, reason: 'missed' },
          { slot: T3, reason: 'missed' },
        ],
      }),
    )
    expect(begin({ due: [T2, T3], next: T4, now: T4 - 1 }).run).toEqual({ slot: T3, state: 'running' })
  })

  test('count as followed by a due slot only when that slot comes due by its spread', () => {
    expect(begin({ due: [T3], next: T4, now: T4 + 29_999, spreadOffsetMs: 30_000 }).run?.slot).toBe(T3)
    expect(begin({ due: [T3], next: T4, now: T4 + 30_000, spreadOffsetMs: 30_000 }).run).toBeNull()
  })

  test('are missed only when the deadline after the instant at which they came due has passed', () => {
    expect(begin({ now: T4 + 330_000, spreadOffsetMs: 30_000 }).run).not.toBeNull()
    expect(begin({ now: T4 + 330_001, spreadOffsetMs: 30_000 }).run).toBeNull()
  })

  test('are missed rather than skipped for a missing permission', () => {
    expect(begin({ now: T4 + 300_001, grantRefusal: 'grant_expired' }).skipped).toEqual([
      { slot: T4, reason: 'missed' },
    ])
  })
})

describe('permission', () => {
  test.each(['grant_expired', 'grant_revoked', 'grant_scope', 'access_lost'] as const)(
    'I8: a slot without permission is skipped as %s, whatever runs are open',
    (grantRefusal) => {
      const states = [RUNNING, QUEUED, RETRYING]

      for (const overlap of OVERLAP_POLICIES) {
        expect(begin({ due: [T3, T4], grantRefusal, open: states, policy: { overlap } })).toEqual(
          decided({
            skipped: [
              { slot: T3, reason: 'missed' },
              { slot: T4, reason: grantRefusal },
            ],
          }),
        )
      }
    },
  )
})

describe('overlap', () => {
  test('I6, forbid: the slot is skipped as overlap, and a run that waits for its retry is not superseded', () => {
    expect(begin({ open: [RUNNING, RETRYING] })).toEqual(decided({ skipped: [{ slot: T4, reason: 'overlap' }] }))
  })

  test('forbid: a run that waits for its retry is superseded when the next slot begins', () => {
    expect(begin({ open: [RETRYING] })).toEqual(
      decided({ run: { slot: T4, state: 'running' }, supersede: [{ id: 'retrying', isTried: true }] }),
    )
  })

  test('queue: the slot waits for the running run', () => {
    expect(begin({ open: [RUNNING], policy: { overlap: 'queue' } })).toEqual(
      decided({ run: { slot: T4, state: 'pending' } }),
    )
  })

  test('queue: the slot waits for a run that no worker has taken yet', () => {
    expect(begin({ open: [UNTAKEN], policy: { overlap: 'queue' } })).toEqual(
      decided({ run: { slot: T4, state: 'pending' } }),
    )
  })

  test('allow: the slot runs beside other runs', () => {
    const states = [RUNNING, RETRYING]

    expect(begin({ open: states, policy: { overlap: 'allow' } })).toEqual(
      decided({ run: { slot: T4, state: 'running' } }),
    )
  })

  test('replace: the slot waits until the cancelled run has ended', () => {
    const states = [RUNNING, QUEUED, RETRYING]

    expect(begin({ open: states, policy: { overlap: 'replace' } })).toEqual(
      decided({
        run: { slot: T4, state: 'pending' },
        supersede: [
          { id: 'queued', isTried: false },
          { id: 'retrying', isTried: true },
        ],
        cancel: ['running'],
      }),
    )
  })
})

describe('for random due slots, open runs and policies', () => {
  const situations = fc.record({
    due: fc
      .uniqueArray(fc.integer({ min: -600, max: 0 }), { minLength: 1, maxLength: 12 })
      .map((minutes) => minutes.toSorted((a, b) => a - b).map((minute) => T4 + minute * MINUTE)),
    nextMinute: fc.option(fc.integer({ min: 1, max: 30 }), { nil: null }),
    excludedIndexes: fc.array(fc.nat({ max: 12 })),
    latenessMs: fc.integer({ min: 0, max: 30 * MINUTE }),
    spreadOffsetMs: fc.integer({ min: 0, max: MINUTE }),
    policy: fc.record({
      overlap: fc.constantFrom(...OVERLAP_POLICIES),
      missed: fc.constantFrom(...MISSED_POLICIES),
      startingDeadlineSeconds: fc.integer({ min: 0, max: 900 }),
    }),
    states: fc.array(fc.constantFrom(RUNNING, QUEUED, UNTAKEN, RETRYING), { maxLength: 4 }),
    grantRefusal: fc.option(fc.constantFrom('grant_expired', 'access_lost'), { nil: null }),
  })

  /** The input of decideBegin for a situation. */
  function inputOf({
    due,
    nextMinute,
    excludedIndexes,
    latenessMs,
    states,
    ...fields
  }: SituationOf<typeof situations>) {
    const now = T4 + fields.spreadOffsetMs + latenessMs
    const next = nextMinute === null ? null : T4 + nextMinute * MINUTE
    const excluded = new Set(excludedIndexes.flatMap((index) => due[index] ?? []))
    const runs: OpenRun[] = states.map((run, index) => ({ ...run, id: `${run.id}-${index}` }))
    return { ...fields, due, next, now, excluded, open: runs }
  }

  test('I6, I11: every due slot is skipped or run exactly once, in order, and at most one runs', () => {
    fc.assert(
      fc.property(situations, (situation) => {
        const input = inputOf(situation)
        const { skipped, run } = begin(input)

        const slots = skipped.map(({ slot }) => slot)
        expect(slots).toEqual(slots.toSorted((a, b) => a - b))
        expect([...slots, ...(run === null ? [] : [run.slot])].toSorted((a, b) => a - b)).toEqual(input.due)
        expect(skipped.every(({ reason }) => RUN_REASONS.includes(reason))).toBe(true)
        for (const slot of input.excluded) expect(skipped).toContainEqual({ slot, reason: 'excluded' })
        if (run === null) return
        expect(run.slot).toBe(input.due.findLast((slot) => !input.excluded.has(slot)))
        expect(input.grantRefusal).toBeNull()
      }),
      { numRuns: 1000 },
    )
  })

  test('runs overlap only under allow, and open runs are ended only if a slot begins', () => {
    fc.assert(
      fc.property(situations, (situation) => {
        const input = inputOf(situation)
        const { run, supersede, cancel } = begin(input)

        const superseded = new Set(supersede.map(({ id }) => id))
        const ended = new Set([...superseded, ...cancel])
        expect(ended.size).toBe(supersede.length + cancel.length)
        if (run === null || input.policy.overlap === 'allow') {
          expect(ended.size).toBe(0)
          return
        }
        const left = input.open.filter(({ id }) => !superseded.has(id))
        // No run is left that waits for its turn or its retry, which would overlap with the new run.
        expect(left.every(({ waitsFor }) => waitsFor === null || waitsFor === 'worker')).toBe(true)
        expect(run.state).toBe(left.length > 0 ? 'pending' : 'running')
      }),
      { numRuns: 1000 },
    )
  })

  test('I11: of an outage that is begun in portions at most one slot runs, the latest', () => {
    fc.assert(
      fc.property(situations, fc.integer({ min: 1, max: 5 }), (situation, size) => {
        const { due, policy, spreadOffsetMs } = situation
        const now = T4 + spreadOffsetMs + situation.latenessMs
        const portions = Array.from({ length: Math.ceil(due.length / size) }, (_, n) =>
          due.slice(n * size, (n + 1) * size),
        )
        const decisions = portions.map((portion, n) =>
          begin({ due: portion, next: portions[n + 1]?.[0] ?? null, now, policy, spreadOffsetMs }),
        )

        const runs = decisions.flatMap(({ run }) => run?.slot ?? [])
        expect(runs).toEqual(begin({ due, now, policy, spreadOffsetMs }).run === null ? [] : [due.at(-1)])
        expect(decisions.flatMap(({ skipped }) => skipped).length + runs.length).toBe(due.length)
      }),
      { numRuns: 500 },
    )
  })
})

type SituationOf<T> = T extends fc.Arbitrary<infer Situation> ? Situation : never
