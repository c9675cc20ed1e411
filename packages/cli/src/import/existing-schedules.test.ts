import type { Schedule } from '@carillon/api'
import { describe, expect, test } from 'vitest'

import { matchExisting } from './existing-schedules.ts'
import { idempotencyKeys, keyAfterDelete } from './idempotent-create.ts'
import type { ImportEntry } from './import-entry.ts'

const NOW = Date.parse('2026-12-24T00:00:00Z')
const PAUSED = { pausedReason: 'moving' }

function entryOf(name: string, url = 'http://a', more: Partial<ImportEntry> = {}): ImportEntry {
  const input = {
    name,
    cadence: { kind: 'cron' as const, expression: '@daily' },
    target: { kind: 'http' as const, url },
  }
  return { place: 'line 1', input, pausedReason: null, skippedSlots: [], ...more }
}

/** A schedule as the server returns it, with the fields that matching compares. */
function scheduleOf(id: string, name: string, url = 'http://a', state: Schedule['state'] = 'active'): Schedule {
  return {
    id,
    name,
    state,
    cadence: { kind: 'cron', expression: '@daily', timezone: 'UTC' },
    target: { kind: 'http', url, method: 'POST', timeoutSeconds: 30 },
    policy: { overlap: 'forbid', retry: { maxAttempts: 10 } },
    ownerSubject: 'user:a',
    grantId: '01995c0e-0000-7000-8000-000000000009',
    grantExpiresAt: null,
    grantWarning: null,
    pausedReason: state === 'paused' ? 'moving' : null,
    skippedSlots: [],
  } as unknown as Schedule
}

function matched(entries: readonly ImportEntry[], schedules: readonly Schedule[]) {
  const { matched: found, missing } = matchExisting(entries, schedules, NOW)
  return {
    existing: found.map(({ entry, schedule, likeness }) => [entries.indexOf(entry), schedule.id, likeness]),
    missing: missing.map((entry) => entries.indexOf(entry)),
  }
}

describe('matching an entry with the existing schedules', () => {
  test('an entry is matched by its exact name', () => {
    expect(matched([entryOf('a'), entryOf('b')], [scheduleOf('1', 'a'), scheduleOf('2', 'B')])).toEqual({
      existing: [[0, '1', 'same']],
      missing: [1],
    })
  })

  test.each<[string, ImportEntry, Schedule]>([
    ['it has another target', entryOf('a', 'http://b'), scheduleOf('1', 'a')],
    ['it is paused and the entry is not', entryOf('a'), scheduleOf('1', 'a', 'http://a', 'paused')],
    [
      'it is completed and the entry is paused',
      entryOf('a', 'http://a', PAUSED),
      scheduleOf('1', 'a', 'http://a', 'completed'),
    ],
  ])('an existing schedule is different: %s', (_what, entry, schedule) => {
    expect(matched([entry], [schedule])).toEqual({ existing: [[0, '1', 'different']], missing: [] })
  })

  test.each<[string, Partial<ImportEntry>]>([
    ['a pause', PAUSED],
    ['a skipped slot', { skippedSlots: ['2026-12-24T18:00:00Z'] }],
  ])('an existing schedule lacks %s', (_what, more) => {
    const entry = entryOf('a', 'http://a', more)

    expect(matched([entry], [scheduleOf('1', 'a')])).toEqual({ existing: [[0, '1', 'lacking']], missing: [] })
  })

  test('an existing schedule is the same if the skipped slot is in the past', () => {
    const entry = entryOf('a', 'http://a', { skippedSlots: ['2026-12-23T18:00:00Z'] })

    expect(matched([entry], [scheduleOf('1', 'a')])).toEqual({ existing: [[0, '1', 'same']], missing: [] })
  })

  test('entries are matched by content first and by order second if several schedules have the same name', () => {
    const entries = [entryOf('a', 'http://1'), entryOf('a', 'http://2'), entryOf('a', 'http://3')]

    expect(matched(entries, [scheduleOf('x', 'a', 'http://2'), scheduleOf('y', 'a', 'http://9')])).toEqual({
      existing: [
        [1, 'x', 'same'],
        [0, 'y', 'different'],
      ],
      missing: [2],
    })
  })
})

describe('the idempotency key of an entry', () => {
  test('depends on the content of the entry, not on the order of its fields', () => {
    const entry = entryOf('a')
    const { name, cadence, target } = entry.input
    const reordered = { ...entry, place: 'line 7', input: { target, name, cadence } }

    expect([...idempotencyKeys([entry]).values()]).toEqual([...idempotencyKeys([reordered]).values()])
  })

  test('differs for another entry, for the second of two equal entries, and after its schedule was deleted', () => {
    const keys = [...idempotencyKeys([entryOf('a'), entryOf('a'), entryOf('b')]).values()]

    expect(new Set([...keys, keyAfterDelete(keys[0] ?? '', 'id')]).size).toBe(4)
    expect(keys.every((key) => /^import:[\da-f]{64}$/.test(key))).toBe(true)
  })
})
