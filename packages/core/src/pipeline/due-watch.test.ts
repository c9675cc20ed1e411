import { expect, test } from 'vitest'

import { RoomShares, splitLanes } from './due-watch.ts'

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

const SLOTS_A = { source: 'slot', lane: 'a' } as const
const SLOTS_B = { source: 'slot', lane: 'b' } as const
const RUNS_A = { source: 'run', lane: 'a' } as const

test('room is shared evenly, and with more lanes than room the first get a place each', () => {
  expect(new RoomShares().share([SLOTS_A, SLOTS_B], 9)).toEqual({ lanes: [SLOTS_A, SLOTS_B], perLane: 4 })
  expect(new RoomShares().share([SLOTS_A, SLOTS_B, RUNS_A], 2)).toEqual({ lanes: [SLOTS_A, SLOTS_B], perLane: 1 })
  expect(new RoomShares().share([], 2)).toEqual({ lanes: [], perLane: 0 })
})

test('with room for one at a time, lanes and sources take turns, however long the first has been waiting', () => {
  const shares = new RoomShares()

  const turns = Array.from({ length: 6 }, () => shares.share([RUNS_A, SLOTS_A, SLOTS_B], 1).lanes)

  expect(turns.flat()).toEqual([RUNS_A, SLOTS_A, SLOTS_B, RUNS_A, SLOTS_A, SLOTS_B])
})

test('a lane that comes due later has its turn before those that had theirs', () => {
  const shares = new RoomShares()
  for (let turn = 0; turn < 4; turn += 1) shares.share([RUNS_A, SLOTS_A], 1)

  expect(shares.share([RUNS_A, SLOTS_A, SLOTS_B], 1).lanes).toEqual([SLOTS_B])
})
