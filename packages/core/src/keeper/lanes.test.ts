import { expect, test } from 'vitest'

import { shareRoom, splitLanes } from './lanes.ts'

test('those who begin at the same time get lanes of their own, the longest waiting first to each', () => {
  expect(splitLanes(['a', 'b', 'c', 'd', 'e'], 2)).toEqual([
    ['a', 'c', 'e'],
    ['b', 'd'],
  ])
})

test('one lane goes to all of them, for rows that are locked are passed over', () => {
  expect(splitLanes(['a'], 2)).toEqual([['a'], ['a']])
})

test('nobody is sent without a lane', () => {
  expect(splitLanes([], 2)).toEqual([])
  expect(splitLanes(['a', 'b'], 1)).toEqual([['a', 'b']])
})

test('room is shared evenly, and with more lanes than room the first get a place each', () => {
  expect(shareRoom(['a', 'b'], 9)).toEqual({ lanes: ['a', 'b'], perLane: 4 })
  expect(shareRoom(['a', 'b', 'c'], 2)).toEqual({ lanes: ['a', 'b'], perLane: 1 })
})
