import { PostgresError } from '@carillon/postgres'
import { expect, test } from 'vitest'

import { createLogger } from '../../src/start/log.ts'
import { createMetrics } from '../../src/start/metrics.ts'
import { RestartLog } from '../../src/start/restart-log.ts'

function setup() {
  let now = 0
  const lines: Record<string, unknown>[] = []
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>)
  const logger = createLogger({ logLevel: 'info' }, { write })
  const metrics = createMetrics()
  const log = new RestartLog({ clock: { monotonicMs: () => now }, logger, meter: metrics.meter })
  return { log, lines, renderMetrics: () => metrics.renderMetrics(), advance: (ms: number) => (now += ms) }
}

function damaged(pid: number): PostgresError {
  return new PostgresError('start_failed', `startup process (PID ${pid}) was terminated`, { log: [`${pid} PANIC: no`] })
}

test('a crash is logged as a warning with the last lines of Postgres, and the restart with the length of the outage', () => {
  const { log, lines, advance } = setup()

  const before = log.isDown
  log.ended(Array.from({ length: 40 }, (_, n) => `line ${n}`))
  const meanwhile = log.isDown
  advance(1234)
  log.restarted()

  expect([before, meanwhile, log.isDown]).toEqual([false, true, false])
  expect(lines).toMatchObject([
    { level: 'warn', event: 'postgres.ended', postgresLog: Array.from({ length: 10 }, (_, n) => `line ${n + 30}`) },
    { level: 'info', event: 'postgres.restarted', downForMs: 1234 },
  ])
})

test('restarts are counted from zero, and a notice reports the last one for an hour', async () => {
  const { log, renderMetrics, advance } = setup()
  expect(await renderMetrics()).toMatch(/^postgres_restarts_total 0$/m)
  expect(log.notice).toBeUndefined()

  log.ended([])
  log.failed(damaged(1), 400)
  expect(await renderMetrics()).toMatch(/^postgres_restarts_total 0$/m)
  log.restarted()
  log.ended([])
  log.restarted()

  expect(await renderMetrics()).toMatch(/^postgres_restarts_total 2$/m)
  advance(3 * 60_000)
  expect(log.notice).toBe(
    'the embedded Postgres stopped and was restarted 3 minutes ago: see postgres.ended in the log',
  )
  advance(57 * 60_000)
  expect(log.notice).toBeUndefined()
})

test('failed restarts are logged while the pause grows, then once a minute', () => {
  const { log, lines, advance } = setup()
  log.ended([])
  const tries = [400, 800, 1600, 3200, ...Array.from({ length: 30 }, () => 5000)]

  for (const [n, retryInMs] of tries.entries()) {
    log.failed(damaged(n), retryInMs)
    advance(retryInMs)
  }

  expect(lines.slice(1).map(({ retryInMs, downForMs }) => [retryInMs, downForMs])).toEqual([
    [400, 0],
    [800, 400],
    [1600, 1200],
    [3200, 2800],
    [5000, 6000],
    [5000, 66_000],
    [5000, 126_000],
  ])
  expect(lines.at(-1)).toMatchObject({
    level: 'warn',
    event: 'postgres.not_restarted',
    error: { code: 'start_failed', message: 'startup process (PID 28) was terminated' },
    postgresLog: ['28 PANIC: no'],
  })
})

test('a new reason is logged at once, and so is the first failure after the next crash', () => {
  const { log, lines } = setup()
  const gone = new PostgresError('database_missing', 'the database is gone')

  log.ended([])
  for (const error of [gone, gone, damaged(1), damaged(2), new Error('EACCES')]) log.failed(error, 5000)
  log.restarted()
  log.ended([])
  log.failed(new Error('EACCES'), 400)

  expect(lines.map(({ event, error }) => [event, (error as Error | undefined)?.message])).toEqual([
    ['postgres.ended', undefined],
    ['postgres.not_restarted', 'the database is gone'],
    ['postgres.not_restarted', 'startup process (PID 1) was terminated'],
    ['postgres.not_restarted', 'EACCES'],
    ['postgres.restarted', undefined],
    ['postgres.ended', undefined],
    ['postgres.not_restarted', 'EACCES'],
  ])
})
