import { describe, expect, test } from 'vitest'

import { FEED_KEPT_MS, type FeedBounds, type FeedPosition } from '../store/feed.ts'
import { cursorOf, isExpired, positionOf, tailOf } from './feed-cursor.ts'

const NOW = Date.parse('2026-03-02T09:00:00Z')
const POSITION: FeedPosition = { xactId: '900', id: '100', ordinal: 2, at: NOW }
const BOUNDS: FeedBounds = { horizon: '1000', lastId: '120', forgottenId: '49', now: NOW }
const HUGE: Partial<FeedBounds> = { lastId: '9007199254740999' }
const LARGEST: FeedPosition = {
  xactId: '18446744073709551615',
  id: '9223372036854775807',
  ordinal: 2147483647,
  at: NOW,
}

test.each([POSITION, LARGEST, { xactId: '0', id: '0', ordinal: 0, at: 0 }])(
  'a place survives being written as a cursor: %j',
  (position) => {
    expect(positionOf(cursorOf(position))).toEqual(position)
  },
)

describe('a text that is no cursor is refused', () => {
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
    expect(() => positionOf(text)).toThrow(/^cursor: expected a cursor as the feed gave it, got /)
  })
})

test('the end of the feed is behind all that has ended, and before everything of the oldest transaction under way', () => {
  expect(tailOf(BOUNDS)).toEqual({ xactId: '999', id: '120', ordinal: 2147483647, at: NOW })
  expect(isExpired(tailOf(BOUNDS), BOUNDS)).toBe(false)
})

describe('a place is given up when something behind it may be gone', () => {
  test.each<[what: string, position: Partial<FeedPosition>, bounds: Partial<FeedBounds>, expected: boolean]>([
    ['its own entry is there', {}, {}, false],
    ['its own entry is the oldest', {}, { forgottenId: '99' }, false],
    ['its own entry is forgotten, the next one is not', {}, { forgottenId: '100' }, false],
    ['the next one is forgotten, too', {}, { forgottenId: '101' }, true],
    ['all are forgotten', {}, { forgottenId: '120' }, true],
    ['all are forgotten, but none came after it', {}, { forgottenId: '100', lastId: '100' }, false],
    ['it is of before the first entry', { id: '0' }, { forgottenId: '0' }, false],
    ['it is of before the first entry, which is forgotten', { id: '0' }, { forgottenId: '1' }, true],
    [
      'as numbers the two ids would be the same',
      { id: '9007199254740992' },
      { ...HUGE, forgottenId: '9007199254740993' },
      true,
    ],
    ['it is younger than what is forgotten', { at: NOW - FEED_KEPT_MS + 300_000 }, {}, false],
    ['it is as old as what may be forgotten', { at: NOW - FEED_KEPT_MS + 299_999 }, {}, true],
    ['it is of an id that was not drawn yet', { id: '121' }, {}, true],
    ['it is of a transaction that has not ended yet', { xactId: '1000' }, {}, true],
  ])('%s', (_what, position, bounds, expected) => {
    expect(isExpired({ ...POSITION, ...position }, { ...BOUNDS, ...bounds })).toBe(expected)
  })
})
