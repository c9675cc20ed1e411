import { RUN_REASONS, RUN_STATES, type RunState } from '@carillon/api'
import { describe, expect, test } from 'vitest'

import { judgeSlot, type LedgerSlot } from './ledger-slot.ts'

/** The outcome of an attempt of a run. */
type Ended = 'failed' | 'lost' | 'succeeded' | 'cancelled' | 'malformed'

const DECISIVE: readonly Ended[] = ['succeeded', 'cancelled', 'malformed']

function slotOf(state: RunState, ended: readonly Ended[], changes: Partial<LedgerSlot> = {}): LedgerSlot {
  const decisive = ended.flatMap((outcome, at) => (DECISIVE.includes(outcome) ? [{ outcome, number: at + 1 }] : []))
  const last = decisive.at(-1)
  return {
    state,
    reason: state === 'skipped' ? 'overlap' : null,
    attemptCount: ended.length + (state === 'running' || state === 'detached' ? 1 : 0),
    attempts: ended.length,
    firstAttempt: ended.length === 0 ? 0 : 1,
    lastAttempt: ended.length,
    decisive: decisive.length,
    decisiveAttempt: last?.number ?? 0,
    decisiveOutcome: (last?.outcome ?? null) as LedgerSlot['decisiveOutcome'],
    endsBeforeAttempt: false,
    isUnreadable: false,
    isLegacy: false,
    ...changes,
  }
}

describe('the audit accepts what begin, take, settle and rescue write', () => {
  test.each<[what: string, slot: LedgerSlot]>([
    ['a slot that begins', slotOf('running', [])],
    ['a second attempt', slotOf('running', ['failed'])],
    ['an attempt after two that were lost', slotOf('running', ['lost', 'lost'])],
    ['a run that waits for its turn, or was handed back untried', slotOf('pending', [])],
    ['a retry', slotOf('retrying', ['failed'])],
    ['a run that lost its worker', slotOf('retrying', ['failed', 'lost'])],
    ['a success', slotOf('succeeded', ['succeeded'])],
    ['a success after other attempts', slotOf('succeeded', ['failed', 'lost', 'succeeded'])],
    ['a failure', slotOf('failed', ['failed'])],
    ['a malformed answer', slotOf('failed', ['failed', 'malformed'])],
    ['a run that lost its last worker', slotOf('failed', ['lost'])],
    ['a retry that the next slot superseded', slotOf('failed', ['failed'], { reason: 'superseded' })],
    ['a retry that lost its permission', slotOf('failed', ['failed'], { reason: 'grant_revoked' })],
    ['a slot whose spec could not be read', slotOf('failed', [], { isUnreadable: true })],
    ['a run that was cancelled while it ran', slotOf('cancelled', ['cancelled'])],
    ['a run that was cancelled before it ran', slotOf('cancelled', [])],
    ['a retry that was cancelled', slotOf('cancelled', ['failed', 'lost'])],
    ['a slot that did not run', slotOf('skipped', [])],
  ])('%s', (_what, slot) => {
    expect(judgeSlot(slot)).toBeNull()
  })
})

describe('attempts that do not match their count', () => {
  test.each<[what: string, slot: LedgerSlot, problem: string]>([
    [
      'the only one is missing',
      slotOf('succeeded', [], { attemptCount: 1 }),
      'expected attempt 1 of a run that is succeeded, got none',
    ],
    [
      'the last one is missing',
      slotOf('failed', ['failed'], { attemptCount: 2 }),
      'expected attempts 1 to 2 of a run that is failed, got attempt 1',
    ],
    [
      'one in the middle is missing',
      slotOf('failed', ['failed', 'failed'], { attemptCount: 3, lastAttempt: 3 }),
      'expected attempts 1 to 3 of a run that is failed, got 2 attempts numbered from 1 to 3',
    ],
    [
      'the first one has another number',
      slotOf('retrying', ['failed'], { firstAttempt: 2, lastAttempt: 2 }),
      'expected attempt 1 of a run that is retrying, got attempt 2',
    ],
    [
      'the running one has a row already',
      slotOf('running', ['failed'], { attemptCount: 1 }),
      'expected no attempts of a run that is running, got attempt 1',
    ],
    [
      'a skipped slot has one',
      slotOf('skipped', ['succeeded'], { attemptCount: 0 }),
      'expected no attempts of a run that is skipped, got attempt 1',
    ],
  ])('%s', (_what, slot, problem) => {
    expect(judgeSlot(slot)).toEqual({ kind: 'attempt_missing', problem })
  })
})

describe('a state that does not follow from the attempts', () => {
  test.each<[what: string, slot: LedgerSlot, problem: string]>([
    [
      'succeeded without a success',
      slotOf('succeeded', ['failed']),
      'it is succeeded, but its last attempt failed or was lost',
    ],
    ['succeeded without an attempt', slotOf('succeeded', []), 'it is succeeded, but its last attempt was not made'],
    [
      'succeeded though cancelled',
      slotOf('succeeded', ['cancelled']),
      'it is succeeded, but its last attempt was cancelled',
    ],
    ['skipped though attempted', slotOf('skipped', ['succeeded']), 'it is skipped, but it was attempted'],
    ['failed though it succeeded', slotOf('failed', ['succeeded']), 'it is failed, but its last attempt succeeded'],
    ['failed though cancelled', slotOf('failed', ['cancelled']), 'it is failed, but its last attempt was cancelled'],
    ['failed without an attempt', slotOf('failed', []), 'it is failed, but its last attempt was not made'],
    [
      'cancelled though it succeeded',
      slotOf('cancelled', ['succeeded']),
      'it is cancelled, but its last attempt succeeded',
    ],
    [
      'cancelled though malformed',
      slotOf('cancelled', ['malformed']),
      'it is cancelled, but its last attempt was malformed',
    ],
    [
      'retrying though it succeeded',
      slotOf('retrying', ['succeeded']),
      'it is retrying, but its last attempt succeeded',
    ],
    ['running though it succeeded', slotOf('running', ['succeeded']), 'it is running, but its last attempt succeeded'],
    [
      'an attempt after a success',
      slotOf('failed', ['succeeded', 'failed']),
      'expected only the last attempt, 2, to end the run, got attempt 1',
    ],
    [
      'two successes',
      slotOf('succeeded', ['succeeded', 'succeeded']),
      'expected only the last attempt, 2, to end the run, got 2 attempts, the last of them attempt 2',
    ],
    [
      'an end before the end of its attempt',
      slotOf('succeeded', ['succeeded'], { endsBeforeAttempt: true }),
      'it ended before its last attempt did',
    ],
    [
      'a success with a reason',
      slotOf('succeeded', ['succeeded'], { reason: 'missed' }),
      'it is succeeded with the reason missed',
    ],
    [
      'a failure with the reason of a skipped slot',
      slotOf('failed', ['failed'], { reason: 'overlap' }),
      'it is failed with the reason overlap',
    ],
  ])('%s', (_what, slot, problem) => {
    expect(judgeSlot(slot)).toEqual({ kind: 'run_contradicted', problem })
  })
})

describe('the audit accepts a line of an older version', () => {
  test.each<[what: string, slot: LedgerSlot]>([
    ['a failed run that was never tried', slotOf('failed', [], { reason: 'superseded' })],
    ['a run that ended at the start of its transaction', slotOf('failed', ['failed'], { endsBeforeAttempt: true })],
    ['a cancelled run with a reason', slotOf('cancelled', [], { reason: 'superseded' })],
  ])('%s', (_what, slot) => {
    expect(judgeSlot(slot)?.kind).toBe('run_contradicted')
    expect(judgeSlot({ ...slot, isLegacy: true })).toBeNull()
  })

  test('unless an attempt is missing', () => {
    expect(judgeSlot(slotOf('succeeded', [], { attemptCount: 1, isLegacy: true }))?.kind).toBe('attempt_missing')
  })
})

test('each state allows certain last outcomes and reasons', () => {
  const ends = [[], ['failed'], ['lost'], ['succeeded'], ['cancelled'], ['malformed']] as const
  const table = RUN_STATES.map((state) => [
    state,
    ends.filter((ended) => judgeSlot(slotOf(state, ended)) === null).map(([last = 'none']) => last),
    RUN_REASONS.filter((reason) => {
      const ended =
        state === 'failed' || state === 'retrying'
          ? (['failed'] as const)
          : state === 'succeeded'
            ? (['succeeded'] as const)
            : []
      return judgeSlot(slotOf(state, ended, { reason })) === null
    }).length,
  ])

  expect(table).toEqual([
    ['pending', ['none', 'failed', 'lost', 'succeeded', 'cancelled', 'malformed'], 0],
    ['running', ['none', 'failed', 'lost'], 0],
    ['detached', ['none', 'failed', 'lost'], 0],
    ['retrying', ['none', 'failed', 'lost'], 0],
    ['succeeded', ['succeeded'], 0],
    ['failed', ['failed', 'lost', 'malformed'], 5],
    ['cancelled', ['none', 'failed', 'lost', 'cancelled'], 0],
    ['skipped', ['none'], RUN_REASONS.length],
  ])
})
