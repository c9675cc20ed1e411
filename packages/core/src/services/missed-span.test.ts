import { expect, test } from 'vitest'

import { MissedSpan } from './missed-span.ts'

test('what was missed is missed until a full audit that began after all of it is over', () => {
  const missed = new MissedSpan()
  expect(missed.since()).toBe(Infinity)

  missed.add(100, 200)
  missed.add(300, 400)
  expect([missed.since(), missed.since(99), missed.since(150), missed.since(400)]).toEqual([100, 100, 150, Infinity])

  // Asking changes nothing; covering does.
  expect(missed.since()).toBe(100)
  missed.cover(250)
  expect(missed.since()).toBe(250)
  missed.cover(400)
  expect(missed.since()).toBe(Infinity)
  missed.add(500, 600)
  expect(missed.since()).toBe(500)
})

test('a span that ends before it begins is none, and one of which nobody knows the start is as long as can be', () => {
  const missed = new MissedSpan()
  missed.add(200, 100)
  expect(missed.since()).toBe(Infinity)

  missed.add(-Infinity, 100)
  expect([missed.since(), missed.since(50)]).toEqual([-Infinity, 50])
  missed.clear()
  expect(missed.since()).toBe(Infinity)
})
