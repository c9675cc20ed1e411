import { expect, test } from 'vitest'

import { isPassedOver, type WorkerRoom, type Overdue } from './overdue.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DUE: Overdue = { lane: 'http.1', overdueMs: MINUTE + 1, isFirstInLane: true }
const IDLE: WorkerRoom = { lanes: new Set(['http.1', 'echo.1']), aliveForMs: HOUR, roomForMs: Infinity }
const BUSY: WorkerRoom = { ...IDLE, roomForMs: 0 }
const OTHER: WorkerRoom = { ...IDLE, lanes: new Set(['graph.1']) }

test.each<[what: string, due: Partial<Overdue>, workers: readonly WorkerRoom[], isPassedOver: boolean]>([
  ['an idle worker left it for over a minute', {}, [BUSY, IDLE], true],
  ['a minute is not over', { overdueMs: MINUTE }, [IDLE], false],
  ['nobody is there at all', {}, [], true],
  ['nobody serves its kind', { isFirstInLane: false }, [OTHER], true],
  ['nobody serves its kind, for less than a minute', { overdueMs: MINUTE }, [OTHER], false],
  [
    'nobody serves its kind, and the first worker has just come',
    { overdueMs: HOUR },
    [{ ...OTHER, aliveForMs: 5000 }],
    false,
  ],
  ['no worker looks at its lane', { lane: 'http.64', isFirstInLane: false }, [BUSY], true],
  ['all workers are full', {}, [BUSY], false],
  ['a worker was full until a minute ago', {}, [{ ...IDLE, roomForMs: MINUTE }], false],
  ['a worker has had room for over a minute', {}, [{ ...IDLE, roomForMs: MINUTE + 1 }], true],
  ['others of its lane come first', { isFirstInLane: false }, [IDLE], false],
  ['the only idle worker has just come', {}, [BUSY, { ...IDLE, aliveForMs: MINUTE }], false],
  [
    'an outage is over, and its worker has just come back',
    { overdueMs: HOUR },
    [{ ...IDLE, aliveForMs: MINUTE }],
    false,
  ],
  ['workers have been busy for ten minutes', { overdueMs: 10 * MINUTE }, [BUSY], false],
  ['workers have been busy for longer than ten minutes', { overdueMs: 10 * MINUTE + 1 }, [BUSY], true],
  ['an outage left much to do, five minutes ago', { overdueMs: HOUR }, [{ ...BUSY, aliveForMs: 5 * MINUTE }], false],
])('%s', (_what, due, workers, expected) => {
  expect(isPassedOver({ ...DUE, ...due }, workers)).toBe(expected)
})
