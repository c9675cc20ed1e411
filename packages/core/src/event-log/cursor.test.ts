import { describe, expect, test } from 'vitest'

import { cursorOf, isExpired, positionOf, tailOf } from './cursor.ts'
import { EVENT_LOG_KEPT_MS, type EventLogBounds, type EventLogPosition } from './store/event-log.ts'

const NOW = Date.parse('2026-03-02T09:00:00Z')
const POSITION: EventLogPosition = { xactId: '900', id: '100', ordinal: 2, at: NOW }
const BOUNDS: EventLogBounds = { horizon: '1000', lastId: '120', deletedId: '49', now: NOW }
const HUGE: Partial<EventLogBounds> = { lastId: '9007199254740999' }
const LARGEST: EventLogPosition = {
  xactId: '18446744073709551615',
  id: '9223372036854775807',
  ordinal: 2147483647,
  at: NOW,
}

test.each([POSITION, LARGEST, { xactId: '0', id: '0', ordinal: 0, at: 0 }])(
  'a position can be written as a cursor and read back: %j',
  (position) => {
    expect(positionOf(cursorOf(position))).toEqual(position)
  },
)

describe('a text that is not a cursor is refused', () => {
  test.each([
    '',
    'x',
    '1-2-3',
    '1-2-3-4-5',
    '-1-2-3-4',
    '1-2-3-x',
    ' 1-2-3-4',
    '1-2-3-4\n',
    '1.5-2-3-4',
    '18446744073709551616-1-0-0',
    '1-9223372036854775808-0-0',
    '1-1-2147483648-0',
    "1'-2-3-4",
    '\0',
    '9'.repeat(100_000),
    null,
    undefined,
    7,
    ['1-2-3-4'],
    {},
  ])('%j', (text) => {
    expect(() => positionOf(text)).toThrow(expect.objectContaining({ code: 'invalid_input' }))
    expect(() => positionOf(text)).toThrow(/^cursor: expected a cursor from the event log, got /)
  })
})

test('the tail is after every ended transaction and before the oldest open one', () => {
  expect(tailOf(BOUNDS)).toEqual({ xactId: '999', id: '120', ordinal: 2147483647, at: NOW })
  expect(isExpired(tailOf(BOUNDS), BOUNDS)).toBe(false)
})

describe('a position is expired when entries after it may be gone', () => {
  test.each<[what: string, position: Partial<EventLogPosition>, bounds: Partial<EventLogBounds>, expected: boolean]>([
    ['its own entry exists', {}, {}, false],
    ['its own entry is the oldest', {}, { deletedId: '99' }, false],
    ['its own entry is deleted and the next one is not', {}, { deletedId: '100' }, false],
    ['the next entry is deleted too', {}, { deletedId: '101' }, true],
    ['all entries are deleted', {}, { deletedId: '120' }, true],
    ['all entries are deleted and none came after it', {}, { deletedId: '100', lastId: '100' }, false],
    ['it is before the first entry', { id: '0' }, { deletedId: '0' }, false],
    ['it is before the first entry, which is deleted', { id: '0' }, { deletedId: '1' }, true],
    [
      'the two ids are equal as JavaScript numbers',
      { id: '9007199254740992' },
      { ...HUGE, deletedId: '9007199254740993' },
      true,
    ],
    ['it is younger than entries that may be deleted', { at: NOW - EVENT_LOG_KEPT_MS + 300_000 }, {}, false],
    ['it is as old as entries that may be deleted', { at: NOW - EVENT_LOG_KEPT_MS + 299_999 }, {}, true],
    ['its id has not been assigned yet', { id: '121' }, {}, true],
    ['its transaction has not ended yet', { xactId: '1000' }, {}, true],
  ])('%s', (_what, position, bounds, expected) => {
    expect(isExpired({ ...POSITION, ...position }, { ...BOUNDS, ...bounds })).toBe(expected)
  })
})
