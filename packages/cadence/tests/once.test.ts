import { describe, expect, test } from 'vitest'

import { cadenceOf, printAll, problemsOf } from './cadence-of.ts'

const GAP = '2027-03-14T02:30:00' // does not exist in New York
const FOLD = '2027-11-07T01:30:00' // exists twice there

describe('once', () => {
  test.each([
    { at: '2026-12-24T18:00:00Z', slot: '2026-12-24T18:00:00.000Z', why: 'an instant' },
    { at: '2026-12-24T18:00:00+01:00', slot: '2026-12-24T17:00:00.000Z', why: 'an instant with an offset' },
    { at: '2026-12-24T18:00:00[Europe/Madrid]', slot: '2026-12-24T17:00:00.000Z', why: 'a local time with its zone' },
    {
      at: '2026-12-24T18:00:00+01:00[Europe/Madrid]',
      slot: '2026-12-24T17:00:00.000Z',
      why: 'a local time with a matching offset and zone',
    },
    {
      at: '2026-12-24T18:00:00',
      timezone: 'Europe/Madrid',
      slot: '2026-12-24T17:00:00.000Z',
      why: 'a local time beside a zone',
    },
    {
      at: '2026-12-24T18:00:00',
      timezone: 'Asia/Kathmandu',
      slot: '2026-12-24T12:15:00.000Z',
      why: 'a zone of quarter hours',
    },
    {
      at: '2011-12-31T00:00:00',
      timezone: 'Pacific/Apia',
      slot: '2011-12-30T10:00:00.000Z',
      why: 'the day after the one that Samoa skipped',
    },
  ])('the value $at is read as $why', ({ at, timezone, slot }) => {
    const cadence = cadenceOf({ kind: 'once', at, ...(timezone === undefined ? {} : { timezone }) })

    expect(printAll(cadence.slots(0))).toEqual([slot])
  })

  test('a local time without a zone is rejected and not read as UTC, and the message says how to name the zone', () => {
    const problems = problemsOf({ kind: 'once', at: '2026-12-24T18:00:00' })

    expect(problems).toMatchObject([
      {
        code: 'missing_field',
        field: 'timezone',
        message: 'expected the zone of a local time, or an offset such as Z in "at", got nothing',
      },
    ])
  })

  test('next returns the slot before it, previous returns it after it, and neither returns it at its own instant', () => {
    const cadence = cadenceOf({ kind: 'once', at: '2026-12-24T18:00:00Z' })
    const at = Date.UTC(2026, 11, 24, 18)

    expect(cadence.next(at - 1)).toBe(at)
    expect(cadence.next(at)).toBeNull()
    expect(cadence.previous(at)).toBeNull()
    expect(cadence.previous(at + 1)).toBe(at)
    expect(cadence.isExhausted(at - 1)).toBe(false)
    expect(cadence.isExhausted(at)).toBe(true)
  })

  test.each([
    { at: GAP, dst: undefined, slot: '2027-03-14T07:00:00.000Z' },
    { at: GAP, dst: { gap: 'shift' }, slot: '2027-03-14T07:00:00.000Z' },
    { at: FOLD, dst: undefined, slot: '2027-11-07T05:30:00.000Z' },
    { at: FOLD, dst: { fold: 'first' }, slot: '2027-11-07T05:30:00.000Z' },
    { at: FOLD, dst: { fold: 'second' }, slot: '2027-11-07T06:30:00.000Z' },
    { at: `${FOLD}-04:00[America/New_York]`, dst: undefined, slot: '2027-11-07T05:30:00.000Z' },
    { at: `${FOLD}-05:00[America/New_York]`, dst: undefined, slot: '2027-11-07T06:30:00.000Z' },
  ])('the value $at in New York with $dst gives the slot $slot', ({ at, dst, slot }) => {
    const cadence = cadenceOf({ kind: 'once', at, timezone: 'America/New_York', ...(dst === undefined ? {} : { dst }) })

    expect(printAll(cadence.slots(0))).toEqual([slot])
  })

  test('a local time in a gap with the policy skip never fires and is rejected', () => {
    const problems = problemsOf({ kind: 'once', at: GAP, timezone: 'America/New_York', dst: { gap: 'skip' } })

    expect(problems.map(({ code }) => code)).toEqual(['never_fires'])
  })

  test('the fold policy both is rejected', () => {
    const problems = problemsOf({ kind: 'once', at: FOLD, timezone: 'America/New_York', dst: { fold: 'both' } })

    expect(problems.map(({ field }) => field)).toEqual(['dst.fold'])
  })

  test.each(['2026-12-24T18:00:00+02:00[Europe/Madrid]', '2026-07-24T18:00:00+01:00[Europe/Madrid]'])(
    'the value %s is rejected because its offset contradicts its zone',
    (at) => {
      expect(problemsOf({ kind: 'once', at }).map(({ code, field }) => ({ code, field }))).toEqual([
        { code: 'conflict', field: 'at' },
      ])
    },
  )

  test('a zone in brackets that differs from timezone is a conflict', () => {
    const problems = problemsOf({ kind: 'once', at: '2026-12-24T18:00:00[Europe/Madrid]', timezone: 'Europe/Paris' })

    expect(problems.map(({ code }) => code)).toEqual(['conflict'])
  })

  test('the canonical form gives the same instant', () => {
    const cadence = cadenceOf({ kind: 'once', at: FOLD, timezone: 'America/New_York', dst: { fold: 'second' } })

    const again = cadenceOf(JSON.parse(JSON.stringify(cadence.spec)), { minimumSeconds: 0 })

    expect(again.spec).toEqual(cadence.spec)
    expect(again.slots(0)).toEqual(cadence.slots(0))
  })
})
