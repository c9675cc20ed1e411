import { describe, expect, test } from 'vitest'

import { parseYaml } from './yaml-document.ts'

const SCHEDULE = {
  name: 'a',
  cadence: { kind: 'cron', expression: '@daily' },
  target: { kind: 'http', url: 'http://a' },
}

/** Each line contains the one before it nine times. */
const ALIAS_BOMB = [
  'a0: &a0 [x]',
  ...Array.from({ length: 9 }, (_, level) => `a${level + 1}: &a${level + 1} [${`*a${level},`.repeat(9)}]`),
  'schedules: *a9',
].join('\n')

describe('a YAML file', () => {
  test('names each schedule by its line', async () => {
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

  test('may share parts among schedules by merge keys and aliases', async () => {
    const text = [
      'shared: &shared { kind: http, url: "http://a", method: PUT }',
      'daily: &daily { kind: cron, expression: "@daily" }',
      'schedules:',
      ...['a', 'b'].map((name) => `  - { name: ${name}, cadence: *daily, target: { <<: *shared, method: GET } }`),
    ].join('\n')

    const { entries, refusals } = await parseYaml(text)

    expect(refusals).toEqual([])
    expect(entries.map(({ input }) => input)).toEqual(
      ['a', 'b'].map((name) => ({ ...SCHEDULE, name, target: { ...SCHEDULE.target, method: 'GET' } })),
    )
  })

  test('may share one cadence among 500 schedules', async () => {
    const items = Array.from(
      { length: 500 },
      (_, index) => `- { name: s${index}, cadence: *c, target: { kind: http } }`,
    )
    const text = [
      `- { name: first, cadence: &c { kind: cron, expression: "@daily" }, target: { kind: http } }`,
      ...items,
    ]

    expect((await parseYaml(text.join('\n'))).entries).toHaveLength(501)
  })

  test.each([
    ['is not closed', 'a: [', /^expected YAML, got a text that cannot be read: .*line 1/],
    ['multiplies its aliases', ALIAS_BOMB, /^expected YAML, got a text that cannot be read: Excessive alias count/],
    ['names an unknown alias', 'schedules: *nowhere', /^expected YAML, got a text that cannot be read: .*nowhere/],
    ['contains itself', 'schedules: &a [*a]', /^expected YAML, got a text that cannot be read: .*circular/],
    [
      'merges a value that is no map',
      'schedules: [{ <<: 1, name: a }]',
      /^expected YAML, got a text that cannot be read: Merge sources must be maps/,
    ],
    ['is nested too deeply', '['.repeat(100_000), /^expected YAML, got a text that cannot be read: /],
  ])('is refused with the reason if it %s', async (_what, text, message) => {
    await expect(parseYaml(text)).rejects.toMatchObject({
      code: 'file_invalid',
      message: expect.stringMatching(message) as string,
    })
  })
})
