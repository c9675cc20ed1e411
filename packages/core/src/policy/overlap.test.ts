import { describe, expect, test } from 'vitest'

import { decideOverlap, OVERLAP_POLICIES, type OpenRun, type OverlapDecision } from './overlap.ts'

/** Open runs from their ids: `r` is running, `p` pending, `w` waiting to retry. */
function openRuns(ids: string): OpenRun[] {
  const states = { r: 'running', p: 'pending', w: 'retrying' } as const
  return ids
    .split(' ')
    .filter(Boolean)
    .map((id) => ({ id, state: states[id.charAt(0) as keyof typeof states], trigger: 'schedule' }))
}

function decided(decision: OverlapDecision['decision'], ended: Partial<OverlapDecision> = {}): OverlapDecision {
  return { decision, supersede: [], cancel: [], displace: [], ...ended }
}

test('A-41: the policies are forbid, queue, allow and replace', () => {
  expect(OVERLAP_POLICIES).toEqual(['forbid', 'queue', 'allow', 'replace'])
})

test.each(OVERLAP_POLICIES)('%s: a slot runs if no run of its schedule is open', (policy) => {
  expect(decideOverlap({ policy, open: [] })).toEqual(decided('run'))
})

describe('forbid', () => {
  test.each([
    ['r1', 'one is running', decided('skip')],
    ['p1', 'one is waiting to start', decided('skip')],
    ['r1 p1', 'one is running and one is waiting', decided('skip')],
    ['w1', 'one is waiting to retry: it is superseded', decided('run', { supersede: ['w1'] })],
    ['w1 w2', 'two are waiting to retry: both are superseded', decided('run', { supersede: ['w1', 'w2'] })],
    ['w1 r1', 'one is running: the slot does not begin, so nothing is superseded', decided('skip')],
    ['w1 p1', 'one is waiting to start: nothing is superseded', decided('skip')],
  ])('A-06, with %s open, because %s', (ids, _, expected) => {
    expect(decideOverlap({ policy: 'forbid', open: openRuns(ids) })).toEqual(expected)
  })
})

describe('queue', () => {
  test.each([
    ['r1', 'one is running: the slot waits', decided('wait')],
    ['r1 r2', 'two are running, begun under another policy: the slot waits', decided('wait')],
    ['r1 p1', 'one waits already, and at most one does', decided('skip')],
    ['p1', 'the one that waits is about to start and still has the place', decided('skip')],
    ['w1', 'one is waiting to retry: it is superseded', decided('run', { supersede: ['w1'] })],
    ['r1 w1', 'a slot that waits has begun, so the retry is superseded', decided('wait', { supersede: ['w1'] })],
    ['r1 p1 w1', 'the slot is skipped, so nothing is superseded', decided('skip')],
    ['p1 w1', 'the slot is skipped, so nothing is superseded', decided('skip')],
  ])('with %s open, because %s', (ids, _, expected) => {
    expect(decideOverlap({ policy: 'queue', open: openRuns(ids) })).toEqual(expected)
  })
})

describe('allow', () => {
  test.each(['r1', 'p1', 'w1', 'r1 r2 p1 w1'])('runs beside %s and touches none of them', (ids) => {
    expect(decideOverlap({ policy: 'allow', open: openRuns(ids) })).toEqual(decided('run'))
  })
})

describe('replace', () => {
  test.each([
    ['r1', 'the running one is cancelled and the slot waits for its end', decided('wait', { cancel: ['r1'] })],
    ['r1 r2', 'all that run are cancelled', decided('wait', { cancel: ['r1', 'r2'] })],
    ['r1 p1', 'the one that waited gives up its place', decided('wait', { cancel: ['r1'], displace: ['p1'] })],
    ['p1', 'nothing runs: the slot takes the place of the one that waited', decided('run', { displace: ['p1'] })],
    ['w1', 'one is waiting to retry: it is superseded', decided('run', { supersede: ['w1'] })],
    [
      'w1 r1 p1 p2',
      'everything before it ends',
      decided('wait', { supersede: ['w1'], cancel: ['r1'], displace: ['p1', 'p2'] }),
    ],
  ])('A-42, with %s open, because %s', (ids, _, expected) => {
    expect(decideOverlap({ policy: 'replace', open: openRuns(ids) })).toEqual(expected)
  })
})

test.each(OVERLAP_POLICIES)('%s: a run-now counts like any other', (policy) => {
  const open = openRuns('r1 p1 w1')
  const manual = open.map((run) => ({ ...run, trigger: 'manual' as const }))

  expect(decideOverlap({ policy, open: manual })).toEqual(decideOverlap({ policy, open }))
})
