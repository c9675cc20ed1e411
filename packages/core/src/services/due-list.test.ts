import { expect, test } from 'vitest'

import { DueList } from './due-list.ts'

const SECOND = 1000

test('schedules are taken once their time has come, the earliest first, and not before', () => {
  const list = new DueList(10)
  list.add({ id: 'late', from: 5, dueAt: 50 }, 200 * SECOND)
  list.add({ id: 'early', from: 3, dueAt: 30 }, 100 * SECOND)

  expect(list.earliestDueAt).toBe(30)
  expect(list.take(109 * SECOND, 10)).toEqual([])
  expect(list.take(110 * SECOND, 10)).toEqual([{ id: 'early', from: 3, dueAt: 30 }])
  expect(list.earliestDueAt).toBe(50)
  expect(list.take(300 * SECOND, 10)).toEqual([{ id: 'late', from: 5, dueAt: 50 }])
  expect([list.size, list.earliestDueAt]).toEqual([0, Infinity])
})

test('no more are taken than are asked for, and the rest stays', () => {
  const list = new DueList(10)
  for (const id of ['a', 'b', 'c']) list.add({ id, from: 0, dueAt: 0 }, 0)

  expect(list.take(60 * SECOND, 2).map(({ id }) => id)).toEqual(['a', 'b'])
  expect(list.size).toBe(1)
  expect(list.take(60 * SECOND, 2).map(({ id }) => id)).toEqual(['c'])
})

test('a schedule is listed once, from the earliest of its slots on', () => {
  const list = new DueList(10)
  list.add({ id: 'a', from: 20, dueAt: 25 }, 0)
  list.add({ id: 'a', from: 10, dueAt: 15 }, 90 * SECOND)
  list.add({ id: 'a', from: 30, dueAt: 35 }, 90 * SECOND)

  expect(list.earliestDueAt).toBe(15)
  expect(list.take(60 * SECOND, 10)).toEqual([{ id: 'a', from: 10, dueAt: 15 }])
  expect(list.take(600 * SECOND, 10)).toEqual([])
})

test('what does not fit is left out, and said so', () => {
  const list = new DueList(2)

  expect(['a', 'b', 'c', 'a'].map((id) => list.add({ id, from: 0, dueAt: 0 }, 0))).toEqual([true, true, false, true])
  expect(list.size).toBe(2)
  list.clear()
  expect([list.size, list.earliestDueAt]).toEqual([0, Infinity])
})
