import { describe, expect, test } from 'vitest'

import { parseJson, parseNdjson, parseYaml } from './documents.ts'

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

  test.each<[unknown, string]>([
    [1, 'expected an object with name, cadence and target'],
    [{ ...SCHEDULE, id: '1', runCount: 3 }, 'expected no field id, runCount: leave it out'],
    [{ name: 'a' }, 'expected cadence and target, got nothing'],
    [{ ...SCHEDULE, paused: true }, 'expected paused to be { "reason": "…" }'],
    [{ ...SCHEDULE, skippedSlots: ['soon'] }, 'expected skippedSlots to be a list of instants'],
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

  test('in YAML tells the line of each schedule', async () => {
    const text = [
      'schedules:',
      '  # the first',
      '  - name: a',
      '    cadence: { kind: cron, expression: "@daily" }',
      '    target: { kind: http, url: http://a }',
      '  - name: b',
    ].join('\n')

    const { entries, refusals } = await parseYaml(text)

    expect(entries).toMatchObject([{ place: 'line 3', input: SCHEDULE }])
    expect(refusals).toEqual([{ place: 'line 6', name: 'b', reason: 'expected cadence and target, got nothing' }])
  })

  test('that is no YAML is refused with the place', async () => {
    await expect(parseYaml('a: [')).rejects.toThrow(/expected YAML: .*line 1/)
  })
})
