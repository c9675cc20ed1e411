import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { createDb, Scheduler, systemClock, Worker, type Clock, type Target } from '@carillon/core'
import { createDatabase } from '@carillon/core/testing'
import { createHttpTarget } from '@carillon/http'
import { expect, onTestFinished, test } from 'vitest'

import { createMetrics, gaugePool } from '../../src/start/metrics.ts'

/** Every metric of this worker and this pool by its Prometheus name: dots become underscores, and a counter ends in `_total`. */
const METRICS = {
  scheduler_schedules_total: 'gauge',
  scheduler_dispatch_total: 'counter',
  scheduler_dispatch_duration_ms: 'histogram',
  scheduler_dispatch_retries_total: 'counter',
  scheduler_queue_available: 'gauge',
  scheduler_queue_scheduled: 'gauge',
  scheduler_backlog_age_seconds: 'gauge',
  scheduler_audit_findings_total: 'counter',
  pg_connection_pool_in_use: 'gauge',
  scheduler_slot_lateness_ms: 'histogram',
  scheduler_slot_skipped_total: 'counter',
  scheduler_rescues_total: 'counter',
  scheduler_dispatch_fenced_total: 'counter',
  scheduler_worker_leases_lost_total: 'counter',
  scheduler_worker_in_flight: 'gauge',
  scheduler_worker_failing_services: 'gauge',
  scheduler_audit_repaired_total: 'counter',
  scheduler_audit_lag_seconds: 'gauge',
  scheduler_service_failures_total: 'counter',
}

/**
 * The metrics that are missing here. `pg_replication_lag_seconds` exists only where there is a replica: a test of core covers it. The others
 * belong to a server or a process.
 */
const METRICS_ELSEWHERE = [
  'pg_replication_lag_seconds',
  'server_failing_parts',
  'http_server_request_duration_seconds',
  'postgres_restarts_total',
  'process_unhandled_rejections_total',
]

const GAUGES_EVERY_MS = 30_000
const slot = { tenantId: 'acme', projectId: 'web', scheduleId: 'daily', targetKind: 'http', scheduledFor: 0 }

/** Starts a worker with one active schedule, and waits until it has refreshed its gauges and finished an audit. */
async function startMeasured() {
  const database = await createDatabase()
  const metrics = createMetrics()
  const target: Target = createHttpTarget({ allowedHosts: ['127.0.0.1'] })
  const scheduler = new Scheduler({ db: createDb(database.pool), targets: new Map([['http', target]]) })
  await scheduler.create(
    { tenantId: 'acme', projectId: 'web', subject: 'user:ada' },
    {
      name: 'Daily',
      cadence: { kind: 'cron', expression: '0 9 1 1 *' },
      target: { kind: 'http', url: 'http://127.0.0.1/' },
    },
  )
  const { promise: counted, resolve } = Promise.withResolvers<void>()
  const clock: Clock = {
    ...systemClock,
    sleep: (ms, signal) => {
      if (ms === GAUGES_EVERY_MS) resolve()
      return systemClock.sleep(ms, signal)
    },
  }
  const worker = new Worker({ databaseUrl: database.url, targets: [target], meter: metrics.meter, clock })
  gaugePool(metrics.meter, database.pool)
  const audited = new Promise((audit) => worker.events.on('audit.finished', audit))
  await worker.start()
  onTestFinished(async () => {
    await worker.stop()
    await database[Symbol.asyncDispose]()
  })
  await Promise.all([counted, audited])
  return { events: worker.events, renderMetrics: () => metrics.renderMetrics() }
}

function typesIn(text: string): Record<string, string> {
  return Object.fromEntries(
    text.matchAll(/^# TYPE (\S+) (\S+)$/gm).map(([, name = '', type = '']) => [name, type] as const),
  )
}

/** The samples of one metric: its labels and its value. */
function linesOf(text: string, name: string): Record<string, number> {
  const lines = text.matchAll(new RegExp(`^${name}(?:\\{(.*)\\})? (\\S+)$`, 'gm'))
  return Object.fromEntries(lines.map(([, labels = '', value]) => [labels, Number(value)]))
}

test('every metric is printed with its name, its type and a description', async () => {
  const { events, renderMetrics } = await startMeasured()
  events.emit('run.began', { ...slot, runId: 'r', latenessMs: 3 })
  events.emit('slot.skipped', { ...slot, reason: 'missed' })
  const settled = { ...slot, runId: 'r', state: 'succeeded', durationMs: 40_000, retryAt: null } as const
  events.emit('attempt.settled', { ...settled, attempt: 2 })
  events.emit('service.failed', { service: 'pool', error: new Error('gone') })

  const text = await renderMetrics()

  expect(typesIn(text)).toEqual(METRICS)
  expect(text).not.toContain('description missing')
  expect(text.endsWith('\n')).toBe(true)
  expect(linesOf(text, 'scheduler_schedules_total')).toEqual({ 'state="active",target_kind="http"': 1 })
  expect(linesOf(text, 'scheduler_dispatch_total')).toEqual({ 'target_kind="http",result="succeeded"': 1 })
  expect(linesOf(text, 'scheduler_dispatch_retries_total')).toEqual({ 'attempt="2"': 1 })
  expect(linesOf(text, 'scheduler_queue_available')).toEqual({ '': 0 })
  expect(Object.keys(linesOf(text, 'pg_connection_pool_in_use'))).toEqual(['pool="worker"', 'pool="server"'])
})

test('counters that alerts watch are present from the start, at zero', async () => {
  const { renderMetrics } = await startMeasured()

  const text = await renderMetrics()

  for (const name of [
    'scheduler_audit_findings_total',
    'scheduler_rescues_total',
    'scheduler_worker_leases_lost_total',
  ]) {
    expect(linesOf(text, name), name).toEqual({ '': 0 })
  }
})

test('lateness has buckets from one millisecond, and durations have buckets up to the longest time limit', async () => {
  const { events, renderMetrics } = await startMeasured()
  events.emit('run.began', { ...slot, runId: 'r', latenessMs: 3 })
  events.emit('attempt.settled', {
    ...slot,
    runId: 'r',
    attempt: 1,
    state: 'failed',
    durationMs: 40_000,
    retryAt: null,
  })

  const text = await renderMetrics()

  expect(linesOf(text, 'scheduler_slot_lateness_ms_bucket')).toMatchObject({
    'target_kind="http",le="2"': 0,
    'target_kind="http",le="5"': 1,
    'target_kind="http",le="300000"': 1,
  })
  expect(linesOf(text, 'scheduler_dispatch_duration_ms_bucket')).toMatchObject({
    'target_kind="http",le="30000"': 0,
    'target_kind="http",le="60000"': 1,
    'target_kind="http",le="+Inf"': 1,
  })
  expect(linesOf(text, 'scheduler_dispatch_duration_ms_sum')).toEqual({ 'target_kind="http"': 40_000 })
})

test('the guide to monitoring lists every metric, and no other', () => {
  const guide = readFileSync(join(import.meta.dirname, '../../../../docs/guides/observing.md'), 'utf8')
  const table = /\n## Metrics\n(.*?)\n## /s.exec(guide)?.[1] ?? ''

  const listed = [...table.matchAll(/^\| `(\w+)`/gm)].map(([, name]) => name)

  expect(new Set(listed)).toEqual(new Set([...Object.keys(METRICS), ...METRICS_ELSEWHERE]))
})
