import { describe, expect, test } from 'vitest'

import { parseJson, parseNdjson } from './documents.ts'

const SCHEDULE = {
  name: 'a',
  cadence: { kind: 'cron', expression: '@daily' },
  target: { kind: 'http', url: 'http://a' },
}

const PAUSED_REASON = 'expected paused to be { "reason": "…" } with 1 to 500 characters, got another value'

describe('a JSON file', () => {
  test.each([
    ['an array', [SCHEDULE]],
    ['an object with schedules', { schedules: [SCHEDULE] }],
    ['a single schedule', SCHEDULE],
  ])('may be %s', (_what, value) => {
    expect(parseJson(JSON.stringify(value)).entries.map(({ input }) => input)).toEqual([SCHEDULE])
  })

  test('may contain a pause and skipped slots, which are applied after the create', () => {
    const slots = ['2026-12-24T18:00:00.000Z']
    const text = JSON.stringify([{ ...SCHEDULE, paused: { reason: 'moving' }, skippedSlots: slots }])

    expect(parseJson(text).entries).toEqual([
      { place: 'schedules[0]', input: SCHEDULE, pausedReason: 'moving', skippedSlots: slots },
    ])
  })

  test('with an automatic pause gets a reason that the server accepts', () => {
    const text = JSON.stringify([{ ...SCHEDULE, paused: { reason: 'auto:consecutive_failures' } }])

    expect(parseJson(text).entries).toMatchObject([{ pausedReason: 'paused automatically: consecutive_failures' }])
  })

  test.each<[unknown, string]>([
    [1, 'expected an object with name, cadence and target, got another value'],
    [{ ...SCHEDULE, id: '1', runCount: 3 }, 'expected no other field, got id, runCount: remove it'],
    [{ name: 'a' }, 'expected cadence and target, got nothing'],
    [{ ...SCHEDULE, paused: true }, PAUSED_REASON],
    [{ ...SCHEDULE, paused: { reason: ' ' } }, PAUSED_REASON],
    [
      { ...SCHEDULE, skippedSlots: ['soon'] },
      'expected skippedSlots to be a list of at most 100 instants, got another value',
    ],
  ])('with the entry %j is refused', (value, reason) => {
    expect(parseJson(JSON.stringify([SCHEDULE, value])).refusals).toMatchObject([{ place: 'schedules[1]', reason }])
  })

  test.each(['{', '1', '"a"', '{}', '{"schedules": 1}'])(
    'with the content %s is refused because it contains no list of schedules',
    (text) => {
      expect(() => parseJson(text)).toThrow('expected')
    },
  )

  test('with one schedule per line is refused with the line at fault', () => {
    const { entries, refusals } = parseNdjson(`${JSON.stringify(SCHEDULE)}\n\nnonsense\n${JSON.stringify(SCHEDULE)}\n`)

    expect(entries.map(({ place }) => place)).toEqual(['line 1', 'line 4'])
    expect(refusals).toMatchObject([{ place: 'line 3', reason: expect.stringMatching(/^expected JSON/) as string }])
  })
})
