import { EventEmitter } from 'node:events'

import { expect, test } from 'vitest'

import { watchInterrupts } from './interrupts.ts'

test('the first interrupt asks for an end, its echo is no second one, and the second ends at once', () => {
  const target = new EventEmitter()
  let [now, ends] = [1000, 0]
  const signal = watchInterrupts(target, { now: () => now }, () => ends++)
  const seen = (): unknown => ({ isAsked: signal.aborted, ends })

  const steps = [seen()]
  target.emit('SIGINT')
  steps.push(seen())
  now += 499
  target.emit('SIGINT')
  steps.push(seen())
  now += 1
  target.emit('SIGTERM')
  steps.push(seen())

  expect(steps).toEqual([
    { isAsked: false, ends: 0 },
    { isAsked: true, ends: 0 },
    { isAsked: true, ends: 0 },
    { isAsked: true, ends: 1 },
  ])
})
