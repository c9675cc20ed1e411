import { describe, expect, test } from 'vitest'

import { explainRun, RUN_REASONS, RUN_STATES, RUN_WAITS } from '../src/index.ts'

const RUN = { reason: null, waitsFor: null, attemptCount: 1, cancelRequestedAt: null }

describe('explanations of runs', () => {
  test.each([
    [{ ...RUN, state: 'succeeded' }, 'Ran.'],
    [{ ...RUN, state: 'succeeded', attemptCount: 3 }, 'Ran, after 3 attempts.'],
    [{ ...RUN, state: 'running', cancelRequestedAt: 1 }, 'Is under way, and was asked to stop.'],
    [{ ...RUN, state: 'pending', attemptCount: 0, waitsFor: 'turn' }, /^It waits for its turn: another run/],
    [{ ...RUN, state: 'pending', attemptCount: 0, waitsFor: 'worker' }, 'It waits for a worker with room.'],
    [
      { ...RUN, state: 'retrying', waitsFor: 'retry' },
      'Did not succeed in 1 attempt, and will be tried again after a pause.',
    ],
    [
      { ...RUN, state: 'retrying', waitsFor: 'worker', attemptCount: 2 },
      'Did not succeed in 2 attempts, and waits for a worker with room.',
    ],
    [{ ...RUN, state: 'failed' }, 'Failed after 1 attempt.'],
    [
      { ...RUN, state: 'failed', reason: 'superseded', attemptCount: 2 },
      /^Failed after 2 attempts: .* next slot began\.$/,
    ],
    [{ ...RUN, state: 'skipped', reason: 'overlap' }, /^Did not run: .*still under way/],
    [{ ...RUN, state: 'skipped', reason: 'grant_expired' }, /^Did not run: .*expired; renew it, or give .* another\.$/],
    [{ ...RUN, state: 'skipped', reason: 'grant_revoked' }, /^Did not run: .*revoked; give the schedule another\.$/],
    [{ ...RUN, state: 'skipped', reason: 'grant_scope' }, /^Did not run: .*cover its target; give .* one that does\.$/],
    [{ ...RUN, state: 'skipped', reason: 'access_lost' }, /^Did not run: .*lost access.*; put the owner back .*\.$/],
    [
      { ...RUN, state: 'failed', reason: 'grant_revoked', attemptCount: 2 },
      /^Failed after 2 attempts: the grant .* revoked; give the schedule another\.$/,
    ],
  ] as const)('a run is explained: %j', (run, expected) => {
    expect(explainRun(run)).toMatch(expected)
  })

  test('an explanation is one sentence for every state and reason', () => {
    for (const state of RUN_STATES) {
      for (const reason of [null, ...RUN_REASONS]) {
        expect(explainRun({ ...RUN, state, reason })).toMatch(/^[A-Z][^.]*\.$/)
      }
      for (const waitsFor of RUN_WAITS) {
        expect(explainRun({ ...RUN, state, waitsFor })).toMatch(/^[A-Z][^.]*\.$/)
      }
    }
  })
})
