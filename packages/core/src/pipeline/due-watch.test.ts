import { expect, test } from 'vitest'

import { RoomShares, splitLanes } from './due-watch.ts'

test('concurrent batches get different lanes, and each batch gets its longest-waiting lanes first', () => {
  expect(splitLanes(['a', 'b', 'c', 'd', 'e'], 2)).toEqual([
    ['a', 'c', 'e'],
    ['b', 'd'],
  ])
})

test('a single lane goes to every batch, because a claim skips rows that another batch has locked', () => {
  expect(splitLanes(['a'], 2)).toEqual([['a'], ['a']])
})

test('no batch is started without a lane', () => {
  expect(splitLanes([], 2)).toEqual([])
  expect(splitLanes(['a', 'b'], 1)).toEqual([['a', 'b']])
})

const SLOTS_A = { source: 'slot', lane: 'a' } as const
const SLOTS_B = { source: 'slot', lane: 'b' } as const
const RUNS_A = { source: 'run', lane: 'a' } as const

test('lanes share the room evenly, and with more lanes than room only the first ones get room for one each', () => {
  expect(new RoomShares().share([SLOTS_A, SLOTS_B], 9)).toEqual({ lanes: [SLOTS_A, SLOTS_B], perLane: 4 })
  expect(new RoomShares().share([SLOTS_A, SLOTS_B, RUNS_A], 2)).toEqual({ lanes: [SLOTS_A, SLOTS_B], perLane: 1 })
  expect(new RoomShares().share([], 2)).toEqual({ lanes: [], perLane: 0 })
})

test('with room for one, lanes and sources alternate, however long the first has been waiting', () => {
  const shares = new RoomShares()

  const rounds = Array.from({ length: 6 }, () => shares.share([RUNS_A, SLOTS_A, SLOTS_B], 1).lanes)

  expect(rounds.flat()).toEqual([RUNS_A, SLOTS_A, SLOTS_B, RUNS_A, SLOTS_A, SLOTS_B])
})

test('a lane that comes due later gets room before lanes that already had some', () => {
  const shares = new RoomShares()
  for (let turn = 0; turn < 4; turn += 1) shares.share([RUNS_A, SLOTS_A], 1)

  expect(shares.share([RUNS_A, SLOTS_A, SLOTS_B], 1).lanes).toEqual([SLOTS_B])
})
