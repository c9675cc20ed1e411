import { OVERLAP_POLICIES } from '@carillon/api'
import { describe, expect, test } from 'vitest'

import { countSuperseded, decideOverlap, type OpenRun, type OverlapDecision } from './overlap.ts'

/**
 * Open runs by the first letter of their ids: `r` is running, `t` waits for its turn, `w` waits for a worker and was never tried,
 * `l` lost its worker and waits for another, `d` was deferred, `b` waits for its retry (backoff).
 */
const RUNS = {
  r: { waitsFor: null, attemptCount: 1 },
  t: { waitsFor: 'turn', attemptCount: 0 },
  w: { waitsFor: 'worker', attemptCount: 0 },
  l: { waitsFor: 'worker', attemptCount: 1 },
  d: { waitsFor: 'deferred', attemptCount: 0 },
  b: { waitsFor: 'retry', attemptCount: 1 },
} as const satisfies Record<string, Omit<OpenRun, 'id'>>

function openRuns(ids: string): OpenRun[] {
  return ids
    .split(' ')
    .filter(Boolean)
    .map((id) => ({ id, ...RUNS[id.charAt(0) as keyof typeof RUNS] }))
}

/** The expected decision for a slot, and the ids of the runs that it ends. */
function decided(
  decision: OverlapDecision['decision'],
  { supersede = '', cancel = '' }: { supersede?: string; cancel?: string } = {},
): OverlapDecision {
  return {
    decision,
    supersede: openRuns(supersede).map(({ id, attemptCount }) => ({ id, isTried: attemptCount > 0 })),
    cancel: cancel.split(' ').filter(Boolean),
  }
}

test('the policies are forbid, queue, allow and replace', () => {
  expect(OVERLAP_POLICIES).toEqual(['forbid', 'queue', 'allow', 'replace'])
})

test.each(OVERLAP_POLICIES)('%s: a slot runs if no run of its schedule is open', (policy) => {
  expect(decideOverlap({ policy, open: [] })).toEqual(decided('run'))
})

describe('forbid', () => {
  test.each([
    ['r1', 'one is running', decided('skip')],
    ['t1', 'one waits for its turn', decided('skip')],
    ['w1', 'one waits for a worker, like a manual run or one that was handed back untried', decided('skip')],
    ['l1', 'one that lost its worker goes first', decided('skip')],
    ['d1', 'one that was deferred goes first', decided('skip')],
    ['r1 t1', 'one is running and one is waiting', decided('skip')],
    ['b1', 'one waits for its retry: it is superseded', decided('run', { supersede: 'b1' })],
    ['b1 b2', 'two wait for their retries: both are superseded', decided('run', { supersede: 'b1 b2' })],
    ['b1 r1', 'one is running: the slot does not begin, so nothing is superseded', decided('skip')],
    ['b1 t1', 'one waits for its turn: nothing is superseded', decided('skip')],
    ['b1 l1', 'one waits for a worker: nothing is superseded', decided('skip')],
  ])('with %s open, because %s', (ids, _, expected) => {
    expect(decideOverlap({ policy: 'forbid', open: openRuns(ids) })).toEqual(expected)
  })
})

describe('queue', () => {
  test.each([
    ['r1', 'one is running: the slot waits', decided('wait')],
    ['r1 r2', 'two are running, begun under another policy: the slot waits', decided('wait')],
    ['w1', 'one waits for a worker and goes first', decided('wait')],
    ['l1', 'one that lost its worker goes first', decided('wait')],
    ['d1', 'one that was deferred goes first', decided('wait')],
    ['r1 t1', 'one waits for its turn already, and at most one may', decided('skip')],
    ['w1 t1', 'one waits for its turn already, behind one that waits for a worker', decided('skip')],
    ['t1', 'one waits for its turn, even though it is about to be freed', decided('skip')],
    ['b1', 'one waits for its retry: it is superseded', decided('run', { supersede: 'b1' })],
    ['r1 b1', 'a slot that waits has begun, so the retry is superseded', decided('wait', { supersede: 'b1' })],
    ['w1 b1', 'a slot that waits has begun, so the retry is superseded', decided('wait', { supersede: 'b1' })],
    ['r1 t1 b1', 'the slot is skipped, so nothing is superseded', decided('skip')],
    ['t1 b1', 'the slot is skipped, so nothing is superseded', decided('skip')],
  ])('with %s open, because %s', (ids, _, expected) => {
    expect(decideOverlap({ policy: 'queue', open: openRuns(ids) })).toEqual(expected)
  })
})

describe('allow', () => {
  test.each(['r1', 't1', 'w1', 'l1', 'd1', 'b1', 'r1 r2 t1 w1 b1'])('runs beside %s and ends none of them', (ids) => {
    expect(decideOverlap({ policy: 'allow', open: openRuns(ids) })).toEqual(decided('run'))
  })
})

describe('replace', () => {
  test.each([
    ['r1', 'the running one is cancelled and the slot waits for its end', decided('wait', { cancel: 'r1' })],
    ['r1 r2', 'all running ones are cancelled', decided('wait', { cancel: 'r1 r2' })],
    ['r1 t1', 'the one that waited for its turn is superseded', decided('wait', { cancel: 'r1', supersede: 't1' })],
    ['t1', 'nothing runs: the one that waited for its turn is superseded', decided('run', { supersede: 't1' })],
    ['w1', 'nothing runs: one that waited for a worker is superseded', decided('run', { supersede: 'w1' })],
    ['l1', 'nothing runs: one that lost its worker is superseded', decided('run', { supersede: 'l1' })],
    ['d1', 'nothing runs: one that was deferred is superseded', decided('run', { supersede: 'd1' })],
    ['b1', 'one waits for its retry: it is superseded', decided('run', { supersede: 'b1' })],
    ['b1 r1 t1 w1', 'every open run is ended', decided('wait', { supersede: 'b1 t1 w1', cancel: 'r1' })],
  ])('with %s open, because %s', (ids, _, expected) => {
    expect(decideOverlap({ policy: 'replace', open: openRuns(ids) })).toEqual(expected)
  })
})

test('a superseded run has failed if it was tried, and is subtracted from run_count otherwise', () => {
  const { supersede } = decideOverlap({ policy: 'replace', open: openRuns('b1 l1 w1 t1 d1') })

  expect(countSuperseded(supersede)).toEqual({ failed: 2, untried: 3 })
})
