import { expect, test } from 'vitest'

import { ManualClock } from '../../tests/manual-clock.ts'
import { Events, type EventMap } from './events.ts'
import { FailureRecord } from './failure-record.ts'

function setup(forgetAfterMs?: number) {
  const [clock, events] = [new ManualClock('2026-03-02T09:00:00Z'), new Events()]
  const emitted: EventMap['service.failed'][] = []
  events.on('service.failed', (failure) => emitted.push(failure))
  return { clock, emitted, record: new FailureRecord({ clock, events }, { name: 'pool' }, forgetAfterMs) }
}

test('a record counts consecutive failures, emits each, and is empty after a success', () => {
  const { clock, emitted, record } = setup()
  const errors = [new Error('first'), 'second']

  expect(record.failure).toBeUndefined()
  expect(record.failed(errors[0])).toBe(1)
  clock.advance(1500)
  expect(record.failed(errors[1])).toBe(2)

  expect(record).toMatchObject({ name: 'pool', failure: { failures: 2, forMs: 1500, error: 'second' } })
  expect(emitted).toEqual(errors.map((error) => ({ service: 'pool', error })))
  record.succeeded()
  expect(record.failure).toBeUndefined()
})

test('a record with a time limit forgets a failure that does not recur within it', () => {
  const { clock, record } = setup(60_000)

  record.failed(new Error('once'))
  clock.advance(59_999)
  expect(record.failure).toMatchObject({ failures: 1, forMs: 59_999 })
  record.failed(new Error('twice'))
  clock.advance(59_999)
  expect(record.failure).toMatchObject({ failures: 2, forMs: 119_998 })
  clock.advance(1)
  expect(record.failure).toBeUndefined()

  expect(record.failed(new Error('again'))).toBe(1)
  expect(record.failure).toMatchObject({ failures: 1, forMs: 0 })
})

test('the rejection of a promise that no code awaits is recorded as a failure and does not end the process', async () => {
  const { record } = setup()
  const { promise, reject } = Promise.withResolvers<never>()

  record.reportRejection(promise)
  reject(new Error('not awaited'))
  await Promise.allSettled([promise])

  expect(record.failure).toMatchObject({ failures: 1, error: 'not awaited' })
})
