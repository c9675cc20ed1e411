import type { CadenceSpec } from '@carillon/cadence'
import { expect, test } from 'vitest'

import { describeCadence } from './schedule-cadence.ts'

test.each<[spec: CadenceSpec, words: string]>([
  [
    { kind: 'cron', expression: '0 9 * * 1-5', timezone: 'Europe/Madrid' },
    'At 09:00 on Monday through Friday, in Europe/Madrid',
  ],
  // Closer than any service would accept today: what was accepted once is still said.
  [{ kind: 'interval', every: 'PT1S', timezone: 'UTC', startAt: '2026-03-02T09:00:00Z' }, 'Every second'],
])('a stored cadence is told in plain English: %j', (spec, words) => {
  expect(describeCadence(spec)).toContain(words)
})

test.each<[what: string, spec: unknown]>([
  ['a kind of a later version', { kind: 'moon', phase: 'full' }],
  ['a zone that is gone', { kind: 'cron', expression: '0 9 * * *', timezone: 'Mars/Olympus' }],
  ['nothing', null],
  ['a text', 'daily'],
])('a cadence that cannot be read is said to be so: %s', (_what, spec) => {
  expect(describeCadence(spec as CadenceSpec)).toBe('A cadence that this version cannot read')
})
