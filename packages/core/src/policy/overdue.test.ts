import { expect, test } from 'vitest'

import { isPassedOver, type WorkerRoom, type Overdue } from './overdue.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DUE: Overdue = { lane: 'http.1', overdueMs: MINUTE + 1, isFirstInLane: true }
const IDLE: WorkerRoom = { lanes: new Set(['http.1', 'echo.1']), aliveForMs: HOUR, roomForMs: Infinity }
const BUSY: WorkerRoom = { ...IDLE, roomForMs: 0 }
const OTHER: WorkerRoom = { ...IDLE, lanes: new Set(['graph.1']) }

test.each<[what: string, due: Partial<Overdue>, workers: readonly WorkerRoom[], isPassedOver: boolean]>([
  ['an idle worker has left it for over a minute', {}, [BUSY, IDLE], true],
  ['it is overdue for only a minute', { overdueMs: MINUTE }, [IDLE], false],
  ['there is no worker', {}, [], true],
  ['no worker serves its kind', { isFirstInLane: false }, [OTHER], true],
  ['no worker serves its kind, and it is overdue for only a minute', { overdueMs: MINUTE }, [OTHER], false],
  [
    'no worker serves its kind, and the first worker has just started',
    { overdueMs: HOUR },
    [{ ...OTHER, aliveForMs: 5000 }],
    false,
  ],
  ['no worker looks at its lane', { lane: 'http.64', isFirstInLane: false }, [BUSY], true],
  ['all workers are full', {}, [BUSY], false],
  ['a worker was full until a minute ago', {}, [{ ...IDLE, roomForMs: MINUTE }], false],
  ['a worker has had room for over a minute', {}, [{ ...IDLE, roomForMs: MINUTE + 1 }], true],
  ['others of its lane are due earlier', { isFirstInLane: false }, [IDLE], false],
  ['the only idle worker has just started', {}, [BUSY, { ...IDLE, aliveForMs: MINUTE }], false],
  ['a worker has just started after an outage', { overdueMs: HOUR }, [{ ...IDLE, aliveForMs: MINUTE }], false],
  ['workers have been busy for ten minutes', { overdueMs: 10 * MINUTE }, [BUSY], false],
  ['workers have been busy for longer than ten minutes', { overdueMs: 10 * MINUTE + 1 }, [BUSY], true],
  [
    'a worker has been busy since an outage ended five minutes ago',
    { overdueMs: HOUR },
    [{ ...BUSY, aliveForMs: 5 * MINUTE }],
    false,
  ],
])('%s', (_what, due, workers, expected) => {
  expect(isPassedOver({ ...DUE, ...due }, workers)).toBe(expected)
})
