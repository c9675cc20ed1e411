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

test('a slot in time, with nothing in its way, runs', () => {
  expect(begin({ next: T4 + MINUTE })).toEqual(decided({ run: { slot: T4, state: 'running' } }))
})

describe('excluded slots', () => {
  test('I6: are recorded and never run', () => {
    expect(begin({ excluded: new Set([T4]) })).toEqual(decided({ skipped: [{ slot: T4, reason: 'excluded' }] }))
  })

  test('are excluded rather than missed, and leave the run to the latest of the others', () => {
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

  test('that are not due yet change nothing', () => {
    expect(begin({ excluded: new Set([T4 + MINUTE]) }).run).toEqual({ slot: T4, state: 'running' })
  })

  test('begin nothing, so a run that waits to retry goes on', () => {
    expect(begin({ excluded: new Set([T4]), open: [RETRYING] }).supersede).toEqual([])
  })
})

describe('missed slots', () => {
  test('I6, I11: are recorded; only the latest due slot runs', () => {
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

  test('I11: of an outage longer than the deadline none runs, unless the policy says run_once', () => {
    const now = T4 + 300_001

    expect(begin({ due: [T3, T4], now }).run).toBeNull()
    expect(begin({ due: [T3, T4], now }).skipped).toHaveLength(2)
    expect(begin({ due: [T3, T4], now, policy: { missed: 'run_once' } }).run).toEqual({ slot: T4, state: 'running' })
  })

  test('I11: of a portion whose next slot is due as well none runs, however close', () => {
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

  test('the spread counts for the next slot too', () => {
    expect(begin({ due: [T3], next: T4, now: T4 + 29_999, spreadOffsetMs: 30_000 }).run?.slot).toBe(T3)
    expect(begin({ due: [T3], next: T4, now: T4 + 30_000, spreadOffsetMs: 30_000 }).run).toBeNull()
  })

  test('the deadline counts from the spread instant', () => {
    expect(begin({ now: T4 + 330_000, spreadOffsetMs: 30_000 }).run).not.toBeNull()
    expect(begin({ now: T4 + 330_001, spreadOffsetMs: 30_000 }).run).toBeNull()
  })

  test('are missed rather than without a right', () => {
    expect(begin({ now: T4 + 300_001, grantRefusal: 'grant_expired' }).skipped).toEqual([
      { slot: T4, reason: 'missed' },
    ])
  })
})

describe('the right to act', () => {
  test.each(['grant_expired', 'grant_revoked', 'grant_scope', 'access_lost'] as const)(
    'I8: a slot without it is skipped as %s, whatever is open',
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
  test('I6, forbid: the slot is skipped and says so, and what waits to retry goes on', () => {
    expect(begin({ open: [RUNNING, RETRYING] })).toEqual(decided({ skipped: [{ slot: T4, reason: 'overlap' }] }))
  })

  test('forbid: a run that waits to retry ends when the next slot begins', () => {
    expect(begin({ open: [RETRYING] })).toEqual(
      decided({ run: { slot: T4, state: 'running' }, supersede: [{ id: 'retrying', isTried: true }] }),
    )
  })

  test('queue: the slot waits for the running one', () => {
    expect(begin({ open: [RUNNING], policy: { overlap: 'queue' } })).toEqual(
      decided({ run: { slot: T4, state: 'pending' } }),
    )
  })

  test('queue: the slot waits for the one that no worker has taken yet', () => {
    expect(begin({ open: [UNTAKEN], policy: { overlap: 'queue' } })).toEqual(
      decided({ run: { slot: T4, state: 'pending' } }),
    )
  })

  test('allow: the slot runs beside the others', () => {
    const states = [RUNNING, RETRYING]

    expect(begin({ open: states, policy: { overlap: 'allow' } })).toEqual(
      decided({ run: { slot: T4, state: 'running' } }),
    )
  })

  test('replace: the slot waits until the cancelled one is over', () => {
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

describe('whatever is due, open and said', () => {
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

  /** The situation as it is handed over, with its parts at hand. */
  function claimed({
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

  test('I6, I11: every due slot is accounted for exactly once, in order, with at most one run', () => {
    fc.assert(
      fc.property(situations, (situation) => {
        const input = claimed(situation)
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

  test('nothing runs beside another unless the policy says allow, and nothing ends unless a slot begins', () => {
    fc.assert(
      fc.property(situations, (situation) => {
        const input = claimed(situation)
        const { run, supersede, cancel } = begin(input)

        const superseded = new Set(supersede.map(({ id }) => id))
        const ended = new Set([...superseded, ...cancel])
        expect(ended.size).toBe(supersede.length + cancel.length)
        if (run === null || input.policy.overlap === 'allow') {
          expect(ended.size).toBe(0)
          return
        }
        const left = input.open.filter(({ id }) => !superseded.has(id))
        // At most one waits for its turn, and none is left whose retry would come beside the new run.
        expect(left.every(({ waitsFor }) => waitsFor === null || waitsFor === 'worker')).toBe(true)
        expect(run.state).toBe(left.length > 0 ? 'pending' : 'running')
      }),
      { numRuns: 1000 },
    )
  })

  test('I11: an outage handed over in portions brings at most one run, of its latest slot', () => {
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
