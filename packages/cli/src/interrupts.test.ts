import { EventEmitter } from 'node:events'

import { expect, test } from 'vitest'

import { watchInterrupts, watchParent } from './interrupts.ts'

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

const NPM = 7
const INIT = 1

function watchedChild(ppid: number, program: string | undefined) {
  const child = { ppid, programOf: () => program }
  const looks: (() => void)[] = []
  const signal = watchParent(NPM, { every: (_ms, look) => void looks.push(look) }, child)
  return { child, signal, look: () => looks.forEach((look) => look()) }
}

test('a process whose parent ends asks for an end', () => {
  const { child, signal, look } = watchedChild(NPM, 'npm')

  look()
  const whileThere = signal.aborted
  child.ppid = INIT
  look()

  expect([whileThere, signal.aborted]).toEqual([false, true])
})

test('a process whose parent ended before the first look asks for an end at once', () => {
  expect(watchedChild(INIT, 'npm').signal.aborted).toBe(true)
})

test.each([
  ['npm', false],
  ['sh', false],
  [undefined, false],
  ['systemd', true],
  ['docker-init', true],
])('a parent that runs %s is one that adopted an orphan: %s', (program, isOrphan) => {
  expect(watchedChild(NPM, program).signal.aborted).toBe(isOrphan)
})
