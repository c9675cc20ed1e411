import { EventEmitter } from 'node:events'

import { expect, test } from 'vitest'

import { watchInterrupts, watchParent } from './interrupts.ts'

test('the first interrupt aborts the signal, a repetition within 500 ms is ignored, and the next one ends the program', () => {
  const target = new EventEmitter()
  let [now, ends] = [1000, 0]
  const signal = watchInterrupts(target, { now: () => now }, () => ends++)
  const seen = (): unknown => ({ isAborted: signal.aborted, ends })

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
    { isAborted: false, ends: 0 },
    { isAborted: true, ends: 0 },
    { isAborted: true, ends: 0 },
    { isAborted: true, ends: 1 },
  ])
})

const NPM = 7
const INIT = 1

function watchedChild(ppid: number, program: string | undefined) {
  const child = { ppid, programOf: () => program }
  const checks: (() => void)[] = []
  const signal = watchParent(NPM, { every: (_ms, check) => void checks.push(check) }, child)
  return { child, signal, poll: () => checks.forEach((check) => check()) }
}

test('the signal aborts when the parent process dies', () => {
  const { child, signal, poll } = watchedChild(NPM, 'npm')

  poll()
  const whileAlive = signal.aborted
  child.ppid = INIT
  poll()

  expect([whileAlive, signal.aborted]).toEqual([false, true])
})

test('the signal is aborted from the start if the parent died before the first check', () => {
  expect(watchedChild(INIT, 'npm').signal.aborted).toBe(true)
})

test.each([
  ['npm', false],
  ['sh', false],
  [undefined, false],
  ['systemd', true],
  ['docker-init', true],
])('a process whose parent runs %s is orphaned: %s', (program, isOrphan) => {
  expect(watchedChild(NPM, program).signal.aborted).toBe(isOrphan)
})
