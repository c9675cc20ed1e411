import { Command } from 'commander'
import { describe, expect, test } from 'vitest'

import { addCadenceOptions, editedCadence, readCadence, type CadenceOptions } from './cadence-options.ts'

const NOW = Date.parse('2026-11-16T09:00:00.000Z')

function optionsOf(...args: string[]): CadenceOptions {
  const command = addCadenceOptions(new Command())
    .exitOverride()
    .configureOutput({ writeErr: () => undefined })
  return command.parse(args, { from: 'user' }).opts<CadenceOptions>()
}

describe('the cadence options', () => {
  test.each([
    [['--in', '5s'], { kind: 'once', at: '2026-11-16T09:00:05.000Z' }],
    [
      ['--at', '2026-12-24 18:00', '--timezone', 'Europe/Madrid'],
      { kind: 'once', at: '2026-12-24T18:00', timezone: 'Europe/Madrid' },
    ],
    [['--cron', '0 9 * * 1-5'], { kind: 'cron', expression: '0 9 * * 1-5' }],
    [['--every', '15m', '--max-runs', '3'], { kind: 'interval', every: 'PT15M', maxRuns: 3 }],
    [
      ['--rrule', 'FREQ=DAILY', '--start', '2026-01-05T09:00:00'],
      { kind: 'rrule', rule: 'FREQ=DAILY', start: '2026-01-05T09:00:00' },
    ],
    [['--weekly', 'mon@09:00'], { kind: 'frequency', frequency: 'weekly', dayOfWeek: 1, timeOfDay: '09:00' }],
    [['--biweekly', 'Sunday@23:30'], { kind: 'frequency', frequency: 'biweekly', dayOfWeek: 0, timeOfDay: '23:30' }],
    [['--monthly', 'SAT@00:00'], { kind: 'frequency', frequency: 'monthly', dayOfWeek: 6, timeOfDay: '00:00' }],
    [
      ['--cron', '@daily', '--gap', 'skip', '--fold', 'both'],
      { kind: 'cron', expression: '@daily', dst: { gap: 'skip', fold: 'both' } },
    ],
    [
      ['--cron', '@daily', '--start-at', '2027-01-01', '--end-at', '2028-01-01'],
      { kind: 'cron', expression: '@daily', startAt: '2027-01-01', endAt: '2028-01-01' },
    ],
    [[], undefined],
  ])('%j give the cadence %j', (args, cadence) => {
    expect(readCadence(optionsOf(...args), NOW)).toEqual(cadence)
  })

  test('are refused if they name more than one rule', () => {
    expect(() => readCadence(optionsOf('--in', '5s', '--cron', '@daily'), NOW)).toThrow('got --in and --cron')
  })

  test.each([
    ['--weekly', 'mon'],
    ['--weekly', 'xyz@09:00'],
    ['--every', 'often'],
    ['--gap', 'both'],
    ['--max-runs', 'many'],
  ])('%s refuses "%s", and the message names the option', (flag, value) => {
    expect(() => optionsOf(flag, value)).toThrow(flag)
  })
})

describe('an edit of a cadence', () => {
  const current = { kind: 'cron', expression: '0 9 * * *', timezone: 'Europe/Madrid' } as const

  test.each([
    [
      'keeps the time zone if it replaces the rule',
      ['--cron', '0 8 * * *'],
      { kind: 'cron', expression: '0 8 * * *', timezone: 'Europe/Madrid' },
    ],
    [
      'replaces the rule and the time zone',
      ['--cron', '0 8 * * *', '--timezone', 'UTC'],
      { kind: 'cron', expression: '0 8 * * *', timezone: 'UTC' },
    ],
    [
      'replaces the time zone only',
      ['--timezone', 'Asia/Tokyo'],
      { kind: 'cron', expression: '0 9 * * *', timezone: 'Asia/Tokyo' },
    ],
    [
      'uses the time zone inside the rule',
      ['--at', '2026-12-24T18:00[Asia/Tokyo]'],
      { kind: 'once', at: '2026-12-24T18:00[Asia/Tokyo]' },
    ],
    ['changes nothing without options', [], undefined],
  ])('replaces the fields that its options name: %s', (_what, args, cadence) => {
    expect(editedCadence(current, optionsOf(...args), NOW)).toEqual(cadence)
  })
})
