import { EventEmitter } from 'node:events'

import { expect, test } from 'vitest'

import { watchInterrupts } from './interrupts.ts'

interface FakeProcess {
  readonly target: EventEmitter & { ppid: number; env: Record<string, string> }
  readonly looks: (() => void)[]
  readonly signal: AbortSignal
}

function startUnder(env: Record<string, string>, parentProgram: string | undefined = 'npm'): FakeProcess {
  const target = Object.assign(new EventEmitter(), { ppid: 7, env })
  const looks: (() => void)[] = []
  const clock = { now: () => 0, every: (_ms: number, look: () => void) => void looks.push(look) }
  return {
    target,
    looks,
    signal: watchInterrupts(target, { clock, end: () => undefined, programOf: () => parentProgram }),
  }
}

test('the first interrupt asks for an end, its echo is no second one, and the second ends at once', () => {
  const target = Object.assign(new EventEmitter(), { ppid: 7, env: {} })
  let [now, ends] = [1000, 0]
  const signal = watchInterrupts(target, { clock: { now: () => now, every: () => undefined }, end: () => ends++ })
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

test('a process that npm started asks for an end once npm is gone', () => {
  const { target, looks, signal } = startUnder({ npm_lifecycle_event: 'start' })

  for (const look of looks) look()
  const whileThere = signal.aborted
  target.ppid = 1
  for (const look of looks) look()

  expect([whileThere, signal.aborted]).toEqual([false, true])
})

test.each([
  ['npm', false],
  ['sh', false],
  ['node', false],
  [undefined, false],
  ['systemd', true],
  ['docker-init', true],
])('a process that npm started and that finds %s as its parent: npm is gone already is %s', (program, isGone) => {
  const { signal } = startUnder({ npm_lifecycle_event: 'start' }, program)

  expect(signal.aborted).toBe(isGone)
})

test('a process that something else started outlives it', () => {
  const { looks } = startUnder({})

  expect(looks).toEqual([])
})
