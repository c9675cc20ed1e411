import { expect, test } from 'vitest'

import { DueList, UnlistedSpan } from './due-list.ts'

const SECOND = 1000

test('take returns the schedules whose time of comparison has come, earliest first', () => {
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

test('take returns no more schedules than its limit, and the rest stays on the list', () => {
  const list = new DueList(10)
  for (const id of ['a', 'b', 'c']) list.add({ id, from: 0, dueAt: 0 }, 0)

  expect(list.take(60 * SECOND, 2).map(({ id }) => id)).toEqual(['a', 'b'])
  expect(list.size).toBe(1)
  expect(list.take(60 * SECOND, 2).map(({ id }) => id)).toEqual(['c'])
})

test('a schedule is listed once, from its earliest slot', () => {
  const list = new DueList(10)
  list.add({ id: 'a', from: 20, dueAt: 25 }, 0)
  list.add({ id: 'a', from: 10, dueAt: 15 }, 90 * SECOND)
  list.add({ id: 'a', from: 30, dueAt: 35 }, 90 * SECOND)

  expect(list.earliestDueAt).toBe(15)
  expect(list.take(60 * SECOND, 10)).toEqual([{ id: 'a', from: 10, dueAt: 15 }])
  expect(list.take(600 * SECOND, 10)).toEqual([])
})

test('add returns false for a schedule that does not fit', () => {
  const list = new DueList(2)

  expect(['a', 'b', 'c', 'a'].map((id) => list.add({ id, from: 0, dueAt: 0 }, 0))).toEqual([true, true, false, true])
  expect(list.size).toBe(2)
  list.clear()
  expect([list.size, list.earliestDueAt]).toEqual([0, Infinity])
})

test('a span stays until a full audit that began after its end has finished', () => {
  const span = new UnlistedSpan()
  expect(span.since()).toBe(Infinity)

  span.add(100, 200)
  span.add(300, 400)
  expect([span.since(), span.since(99), span.since(150), span.since(400)]).toEqual([100, 100, 150, Infinity])

  // A read does not change the span.
  expect(span.since()).toBe(100)
  span.cover(250)
  expect(span.since()).toBe(250)
  span.cover(400)
  expect(span.since()).toBe(Infinity)
  span.add(500, 600)
  expect(span.since()).toBe(500)
})

test('a span that ends before it begins is ignored, and one with an unknown start begins at -Infinity', () => {
  const span = new UnlistedSpan()
  span.add(200, 100)
  expect(span.since()).toBe(Infinity)

  span.add(-Infinity, 100)
  expect([span.since(), span.since(50)]).toEqual([-Infinity, 50])
  span.clear()
  expect(span.since()).toBe(Infinity)
})
