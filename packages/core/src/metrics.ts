import { metrics, type Meter, type ObservableGauge } from '@opentelemetry/api'

import type { Events } from './events.ts'
import { retentionMargin } from './policy/retention.ts'
import type { Census } from './store/census.ts'
import type { Target } from './target.ts'

const LATENESS_BOUNDARIES_MS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 30_000, 300_000]
/** Up to the longest time limit that a target may ask for. */
const DURATION_BOUNDARIES_MS = [1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000]

/** The process's meter, unless the caller brings one. Without an SDK every instrument does nothing. */
export function defaultMeter(): Meter {
  return metrics.getMeter('carillon')
}

/**
 * Counts what events tell, under the names of E-63. Labels never name a tenant, user or schedule: they would be without
 * number.
 */
export function countEvents(events: Events, meter: Meter): void {
  const dispatched = meter.createCounter('scheduler.dispatch.total', { description: 'attempts, by what they came to' })
  const duration = meter.createHistogram('scheduler.dispatch.duration_ms', {
    unit: 'ms',
    description: 'from the call of a target to what came of it',
    advice: { explicitBucketBoundaries: DURATION_BOUNDARIES_MS },
  })
  const retries = meter.createCounter('scheduler.dispatch.retries', { description: 'attempts after the first' })
  const lateness = meter.createHistogram('scheduler.slot.lateness_ms', {
    unit: 'ms',
    description: 'from the nominal slot to its begin',
    advice: { explicitBucketBoundaries: LATENESS_BOUNDARIES_MS },
  })
  const skipped = meter.createCounter('scheduler.slot.skipped', { description: 'slots that did not run, by reason' })
  const rescued = meter.createCounter('scheduler.rescues', { description: 'runs taken over from dead workers' })
  const fenced = meter.createCounter('scheduler.dispatch.fenced', { description: 'writes refused to a former holder' })
  const leasesLost = meter.createCounter('scheduler.worker.leases_lost', {
    description: 'everything held was let go of',
  })
  const findings = meter.createCounter('scheduler.audit.findings', { description: 'what the auditor found amiss' })
  const repaired = meter.createCounter('scheduler.audit.repaired', { description: 'findings that it set right' })
  // From the start, not from the first: an alert on any increase cannot see one that begins at 1.
  for (const counter of [rescued, fenced, leasesLost, findings, repaired]) counter.add(0)
  const failures = meter.createCounter('scheduler.service.failures', { description: 'by service' })

  events.on('run.began', ({ targetKind, latenessMs }) => lateness.record(latenessMs, { target_kind: targetKind }))
  events.on('slot.skipped', ({ targetKind, reason }) => skipped.add(1, { target_kind: targetKind, reason }))
  events.on('attempt.settled', ({ targetKind, state, attempt, durationMs }) => {
    dispatched.add(1, { target_kind: targetKind, result: state })
    duration.record(durationMs, { target_kind: targetKind })
    if (attempt > 1) retries.add(1, { attempt })
  })
  events.on('attempt.fenced', () => fenced.add(1))
  events.on('run.rescued', () => rescued.add(1))
  events.on('lease.lost', () => leasesLost.add(1))
  events.on('audit.found', (audit) => {
    findings.add(audit.findings)
    repaired.add(audit.repaired)
  })
  events.on('service.failed', ({ service }) => failures.add(1, { service: service.split(' ')[0] ?? service }))
}

/** E-52: by how much the called side's memory outlasts the longest retries; below 1 a late attempt would run twice. */
export function gaugeRetention(targets: ReadonlyMap<string, Target>, meter: Meter): void {
  const gauge = meter.createObservableGauge('scheduler.dispatch.idempotency_window_safety', {
    description: 'memory of the called side, in times of the longest retries; below 1 a late attempt would run twice',
  })
  gauge.addCallback((result) => {
    for (const { kind, retry, idempotencyRetentionSeconds } of targets.values()) {
      if (idempotencyRetentionSeconds === undefined) continue
      result.observe(retentionMargin({ retry, idempotencyRetentionSeconds }), { target_kind: kind })
    }
  })
}

/** What the gauges of a worker show. */
export interface GaugedWorker {
  readonly census: Census | undefined
  readonly inFlight: number
  readonly connectionsInUse: number
  /** How long ago the slots came due that the audit has compared last, whichever worker audits; null if that is not known. */
  readonly auditLagSeconds: number | null
  /** By service; null if none fails. */
  readonly failing: Readonly<Record<string, unknown>> | null
}

/** Shows the latest census, and what this process holds. */
export function gaugeWorker(worker: GaugedWorker, meter: Meter): void {
  const gauge = (name: string, description: string): ObservableGauge =>
    meter.createObservableGauge(name, { description })
  gauge('scheduler.schedules.total', 'schedules there are').addCallback((result) => {
    for (const { state, targetKind, count } of worker.census?.schedules ?? []) {
      result.observe(count, { state, target_kind: targetKind })
    }
  })
  gauge('scheduler.queue.available', 'slots that are due and not begun').addCallback((result) => {
    if (worker.census !== undefined) result.observe(worker.census.due)
  })
  gauge('scheduler.queue.scheduled', 'runs that wait for a retry, their turn or a worker').addCallback((result) => {
    if (worker.census !== undefined) result.observe(worker.census.waiting)
  })
  gauge('scheduler.backlog.age_seconds', 'age of the oldest slots that wait for their lines').addCallback((result) => {
    if (worker.census !== undefined) result.observe(worker.census.backlogAgeSeconds)
  })
  gauge('pg.replication.lag_seconds', 'of the replica that is furthest behind').addCallback((result) => {
    const lag = worker.census?.replicationLagSeconds ?? null
    if (lag !== null) result.observe(lag)
  })
  gauge('scheduler.worker.in_flight', 'runs that this worker holds').addCallback((result) => {
    result.observe(worker.inFlight)
  })
  gauge('scheduler.worker.failing_services', 'services of this worker that fail at the moment').addCallback(
    (result) => {
      result.observe(Object.keys(worker.failing ?? {}).length)
    },
  )
  gauge('scheduler.audit.lag_seconds', 'age of the last slots that the audit has compared').addCallback((result) => {
    if (worker.auditLagSeconds !== null) result.observe(worker.auditLagSeconds)
  })
  gauge('pg.connection_pool.in_use', 'connections to Postgres that are lent').addCallback((result) => {
    result.observe(worker.connectionsInUse, { pool: 'worker' })
  })
}
