import { describe, expect, test } from 'vitest'

import { CadenceCache } from '../cadences/cadence-cache.ts'
import { resolvePolicy } from '../policy/schedule-policy.ts'
import { spreadOffsetMs } from '../policy/spread.ts'
import { CHANGE_RACE_MS, compareWithLedger, type SlotVerdict } from './expected-slots.ts'
import type { AuditedLines, AuditedSchedule, AuditedSpan, BacklogRange } from './store/slots.ts'

const HOUR = 3_600_000
const FROM = Date.parse('2026-11-14T00:00:00Z')
const WINDOW = { from: FROM, to: FROM + 10 * HOUR }
const ID = '0199d3c0-0000-7000-8000-000000000001'

const HOURLY = JSON.stringify({ kind: 'cron', expression: '0 * * * *', timezone: 'UTC' })
const HALF_PAST = JSON.stringify({ kind: 'cron', expression: '30 * * * *', timezone: 'UTC' })

function policyOf(spreadSeconds = 0): string {
  const retry = { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 }
  const result = resolvePolicy({ spreadSeconds }, { cadenceKind: 'cron', policy: { retry } })
  if (!result.ok) throw new Error('expected a policy, got problems')
  return JSON.stringify(result.policy)
}

function at(hour: number): number {
  return FROM + hour * HOUR
}

function spanOf(changes: Partial<AuditedSpan>): AuditedSpan {
  return { revision: 1, nextSlotAt: at(0), endsAt: null, cadence: HOURLY, policy: policyOf(), ...changes }
}

function verdictOf(
  schedule: Partial<AuditedSchedule>,
  lines: Partial<AuditedLines> = {},
  { slotsMax = 100, linesMax = 100, backlogs = [] as readonly BacklogRange[] } = {},
): SlotVerdict {
  const whole = {
    id: ID,
    lane: 'http.1',
    nextSlotAt: null,
    dueAt: null,
    spans: [],
    ...schedule,
  }
  const comparison = { window: WINDOW, cadences: new CadenceCache(), slotsMax, linesMax, backlogs }
  return compareWithLedger(whole, { scheduled: [], manual: [], ...lines }, comparison)
}

function lostHours({ lost }: SlotVerdict): number[] {
  return lost.map(({ slot }) => (slot - FROM) / HOUR)
}

describe('expected slots', () => {
  test('are none without a history', () => {
    expect(verdictOf({})).toEqual({ expected: 0, lost: [], unknown: [], until: WINDOW.to })
  })

  test('are those from the first next slot to the end of the window, both included', () => {
    const verdict = verdictOf({ spans: [spanOf({ nextSlotAt: at(7) })] })

    expect(lostHours(verdict)).toEqual([7, 8, 9, 10])
    expect(verdict.expected).toBe(4)
  })

  test('are none before the window, even if an older slot was next', () => {
    expect(lostHours(verdictOf({ spans: [spanOf({ nextSlotAt: at(-50), endsAt: at(1) })] }))).toEqual([0, 1])
  })

  test('include those that were due at the next change, each with its revision', () => {
    const { lost } = verdictOf({
      spans: [
        spanOf({ nextSlotAt: at(1), endsAt: at(3) }),
        spanOf({ revision: 2, nextSlotAt: at(8.5), cadence: HALF_PAST }),
      ],
    })

    expect(lost).toEqual([
      { slot: at(1), revision: 1 },
      { slot: at(2), revision: 1 },
      { slot: at(3), revision: 1 },
      { slot: at(8.5), revision: 2 },
      { slot: at(9.5), revision: 2 },
    ])
  })

  test('include each slot once, by the span in which it came due first', () => {
    const { expected, lost } = verdictOf({
      spans: [spanOf({ nextSlotAt: at(9), endsAt: at(9) }), spanOf({ revision: 2, nextSlotAt: at(9) })],
    })

    expect(expected).toBe(2)
    expect(lost.map(({ revision }) => revision)).toEqual([1, 2])
  })

  test('include only those that came due by their spread', () => {
    const spreadSeconds = 3600
    const offset = spreadOffsetMs(ID, spreadSeconds)
    const span = { nextSlotAt: at(1), policy: policyOf(spreadSeconds) }

    expect(offset).toBeGreaterThan(0)
    expect(lostHours(verdictOf({ spans: [spanOf({ ...span, endsAt: at(3) + offset })] }))).toEqual([1, 2, 3])
    expect(lostHours(verdictOf({ spans: [spanOf({ ...span, endsAt: at(3) + offset - 1 })] }))).toEqual([1, 2])
    expect(lostHours(verdictOf({ spans: [spanOf(span)] }))).not.toContain(10)
  })
})

describe('the comparison with the lines', () => {
  test('does not report the next slot of an active schedule as lost', () => {
    expect(lostHours(verdictOf({ nextSlotAt: at(9), dueAt: at(9), spans: [spanOf({ nextSlotAt: at(7) })] }))).toEqual([
      7, 8,
    ])
  })

  test('accepts a line of any trigger, but reports only lines of the trigger schedule as unknown', () => {
    const verdict = verdictOf(
      { spans: [spanOf({ nextSlotAt: at(8) })] },
      { scheduled: [at(8), at(9) + 1], manual: [at(9), at(9) + 2] },
    )

    expect(lostHours(verdict)).toEqual([10])
    expect(verdict.unknown).toEqual([at(9) + 1])
  })

  test('ignores a line that came due right after a change, and reports later ones as unknown', () => {
    const endsAt = at(4) - CHANGE_RACE_MS
    const lines = { scheduled: [at(3), at(4)] }

    expect(verdictOf({ spans: [spanOf({ nextSlotAt: at(3), endsAt })] }, lines)).toMatchObject({
      expected: 1,
      unknown: [],
    })
    expect(verdictOf({ spans: [spanOf({ nextSlotAt: at(3), endsAt: endsAt - 1 })] }, lines).unknown).toEqual([at(4)])
    expect(verdictOf({ spans: [spanOf({ nextSlotAt: at(3), endsAt })] }, { scheduled: [at(3)] }).lost).toEqual([])
  })
})

describe('a backlog', () => {
  test('has slots that are expected and not lost, while slots beside it are lost', () => {
    const spans = [spanOf({ nextSlotAt: at(2), endsAt: at(8) })]

    const verdict = verdictOf({ spans }, { scheduled: [at(2)] }, { backlogs: [{ from: at(4), to: at(6) }] })

    expect(lostHours(verdict)).toEqual([3, 7, 8])
    expect(verdict.expected).toBe(7)
  })
})

describe('a comparison is cut off at its limit', () => {
  test('of expected slots', () => {
    const verdict = verdictOf({ spans: [spanOf({})] }, { scheduled: [at(0), at(9), at(9) + 1] }, { slotsMax: 3 })

    expect(verdict).toMatchObject({ expected: 3, unknown: [], until: at(2) })
    expect(lostHours(verdict)).toEqual([1, 2])
  })

  test('of lines', () => {
    const verdict = verdictOf({ spans: [spanOf({})] }, { scheduled: [at(0), at(2)], manual: [at(1)] }, { linesMax: 3 })

    expect(verdict).toEqual({ expected: 3, lost: [], unknown: [], until: at(2) })
  })
})

test.each([
  { spec: 'an invalid cadence', span: spanOf({ cadence: '{"kind":"cron","expression":"whenever"}' }) },
  { spec: 'an invalid policy', span: spanOf({ policy: '{}' }) },
  { spec: 'a missing revision', span: spanOf({ cadence: null, policy: null }) },
])('$spec cannot be audited', ({ span }) => {
  expect(() => verdictOf({ spans: [span] })).toThrow(Error)
})
