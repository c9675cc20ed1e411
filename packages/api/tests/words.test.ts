import { describe, expect, test } from 'vitest'

import { explainRun, isRunOver, RUN_REASONS, RUN_STATES, RUN_WAITS } from '../src/index.ts'

const RUN = { reason: null, waitsFor: null, attemptCount: 1, cancelRequestedAt: null }

test('a run is open while it is pending, running, detached or retrying, and over in every other state', () => {
  expect(RUN_STATES.filter((state) => !isRunOver({ state }))).toEqual(['pending', 'running', 'detached', 'retrying'])
})

describe('explanations of runs', () => {
  test.each([
    [{ ...RUN, state: 'succeeded' }, 'The run succeeded.'],
    [{ ...RUN, state: 'succeeded', attemptCount: 3 }, 'The run succeeded after 3 attempts.'],
    [{ ...RUN, state: 'running', cancelRequestedAt: 1 }, 'The run is under way, and was asked to stop.'],
    [{ ...RUN, state: 'pending', attemptCount: 0, waitsFor: 'turn' }, /^The run waits for its turn: another run/],
    [{ ...RUN, state: 'pending', attemptCount: 0, waitsFor: 'worker' }, 'The run waits for a worker with room.'],
    [
      { ...RUN, state: 'retrying', waitsFor: 'retry' },
      'The run did not succeed in 1 attempt; it will be tried again after a pause.',
    ],
    [
      { ...RUN, state: 'retrying', waitsFor: 'worker', attemptCount: 2 },
      'The run did not succeed in 2 attempts; it waits for a worker with room.',
    ],
    [{ ...RUN, state: 'failed' }, 'The run failed after 1 attempt.'],
    [
      { ...RUN, state: 'failed', reason: 'superseded', attemptCount: 2 },
      /^The run failed after 2 attempts: .* next slot began\.$/,
    ],
    [{ ...RUN, state: 'skipped', reason: 'overlap' }, /^The run did not start: .*still under way/],
    [
      { ...RUN, state: 'skipped', reason: 'grant_expired' },
      /^The run did not start: .*expired; renew it, or give .* another\.$/,
    ],
    [
      { ...RUN, state: 'skipped', reason: 'grant_revoked' },
      /^The run did not start: .*revoked; give the schedule another\.$/,
    ],
    [
      { ...RUN, state: 'skipped', reason: 'grant_scope' },
      /^The run did not start: .*cover its target; give .* one that does\.$/,
    ],
    [
      { ...RUN, state: 'skipped', reason: 'access_lost' },
      /^The run did not start: .*lost access.*; put the owner back .*\.$/,
    ],
    [
      { ...RUN, state: 'failed', reason: 'grant_revoked', attemptCount: 2 },
      /^The run failed after 2 attempts: the grant .* revoked; give the schedule another\.$/,
    ],
  ] as const)('a run is explained: %j', (run, expected) => {
    expect(explainRun(run)).toMatch(expected)
  })

  test('a reason of a module is explained by the sentence of the module, and by its word if the module is gone', () => {
    const run = { ...RUN, state: 'skipped', reason: 'no_credit' } as const

    expect(explainRun(run, { no_credit: 'the account has no credit' })).toBe(
      'The run did not start: the account has no credit.',
    )
    expect(explainRun({ ...run, state: 'failed' }, { no_credit: 'the account has no credit' })).toMatch(
      /: the account has no credit\.$/,
    )
    expect(explainRun(run)).toBe('The run did not start: no_credit.')
    expect(explainRun({ ...run, reason: 'overlap' }, { overlap: 'something else' })).not.toContain('something else')
    expect(explainRun({ ...run, reason: 'toString' }, {})).toBe('The run did not start: toString.')
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
