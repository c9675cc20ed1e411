import { describe, expect, test } from 'vitest'

import { parseJson, parseNdjson } from './documents.ts'

const SCHEDULE = {
  name: 'a',
  cadence: { kind: 'cron', expression: '@daily' },
  target: { kind: 'http', url: 'http://a' },
}

describe('a document', () => {
  test.each([
    ['an array', [SCHEDULE]],
    ['an object with schedules', { schedules: [SCHEDULE] }],
    ['a single schedule', SCHEDULE],
  ])('may be %s', (_what, value) => {
    expect(parseJson(JSON.stringify(value)).entries.map(({ input }) => input)).toEqual([SCHEDULE])
  })

  test('keeps what is to be done once a schedule is made', () => {
    const slots = ['2026-12-24T18:00:00.000Z']
    const text = JSON.stringify([{ ...SCHEDULE, paused: { reason: 'moving' }, skippedSlots: slots }])

    expect(parseJson(text).entries).toEqual([
      { place: 'schedules[0]', input: SCHEDULE, pausedReason: 'moving', skippedSlots: slots },
    ])
  })

  test('gives a pause that was nobody’s a reason that may be given', () => {
    const text = JSON.stringify([{ ...SCHEDULE, paused: { reason: 'auto:consecutive_failures' } }])

    expect(parseJson(text).entries).toMatchObject([{ pausedReason: 'paused automatically: consecutive_failures' }])
  })

  test.each<[unknown, string]>([
    [1, 'expected an object with name, cadence and target'],
    [{ ...SCHEDULE, id: '1', runCount: 3 }, 'expected no field id, runCount: leave it out'],
    [{ name: 'a' }, 'expected cadence and target, got nothing'],
    [{ ...SCHEDULE, paused: true }, 'expected paused to be { "reason": "…" }, a text of 1 to 500 characters'],
    [
      { ...SCHEDULE, paused: { reason: ' ' } },
      'expected paused to be { "reason": "…" }, a text of 1 to 500 characters',
    ],
    [{ ...SCHEDULE, skippedSlots: ['soon'] }, 'expected skippedSlots to be a list of at most 100 instants'],
  ])('refuses %j', (value, reason) => {
    expect(parseJson(JSON.stringify([SCHEDULE, value])).refusals).toMatchObject([{ place: 'schedules[1]', reason }])
  })

  test.each(['{', '1', '"a"', '{}', '{"schedules": 1}'])('is none: %s', (text) => {
    expect(() => parseJson(text)).toThrow('expected')
  })

  test('of lines tells the line of what is wrong', () => {
    const { entries, refusals } = parseNdjson(`${JSON.stringify(SCHEDULE)}\n\nnonsense\n${JSON.stringify(SCHEDULE)}\n`)

    expect(entries.map(({ place }) => place)).toEqual(['line 1', 'line 4'])
    expect(refusals).toMatchObject([{ place: 'line 3', reason: expect.stringMatching(/^expected JSON/) as string }])
  })
})
