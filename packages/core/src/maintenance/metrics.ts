import { metrics, type Meter, type ObservableGauge } from '@opentelemetry/api'

import { LISTENER_OF, type Events } from '../kernel/events.ts'
import type { Gauges } from './store/gauges.ts'

const LATENESS_BOUNDARIES_MS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000, 30_000, 300_000]
/** Up to the longest time limit that a target may ask for. */
const DURATION_BOUNDARIES_MS = [1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000, 300_000]

/** The meter for a caller that passes none: that of the process's OpenTelemetry SDK. Without an SDK its instruments do nothing. */
export function defaultMeter(): Meter {
  return metrics.getMeter('carillon')
}

/**
 * Counts events. Labels never name a tenant, user or schedule, because the number of time series must stay bounded.
 */
export function countEvents(events: Events, meter: Meter): void {
  const dispatched = meter.createCounter('scheduler.dispatch.total', { description: 'attempts, by result' })
  const duration = meter.createHistogram('scheduler.dispatch.duration_ms', {
    unit: 'ms',
    description: 'from the call of a target to its result',
    advice: { explicitBucketBoundaries: DURATION_BOUNDARIES_MS },
  })
  const retries = meter.createCounter('scheduler.dispatch.retries', { description: 'attempts after the first' })
  const lateness = meter.createHistogram('scheduler.slot.lateness_ms', {
    unit: 'ms',
    description: 'from the instant of a slot to the start of its run',
    advice: { explicitBucketBoundaries: LATENESS_BOUNDARIES_MS },
  })
  const skipped = meter.createCounter('scheduler.slot.skipped', { description: 'slots that did not run, by reason' })
  const rescued = meter.createCounter('scheduler.rescues', {
    description: 'runs taken over from workers that lost their lease',
  })
  const fenced = meter.createCounter('scheduler.dispatch.fenced', {
    description: 'writes refused because another worker had taken the run',
  })
  const leasesLost = meter.createCounter('scheduler.worker.leases_lost', {
    description: 'leases that a worker lost, with all runs that it held',
  })
  const findings = meter.createCounter('scheduler.audit.findings', { description: 'faults that the auditor found' })
  const repaired = meter.createCounter('scheduler.audit.repaired', { description: 'faults that the auditor repaired' })
  // Start at 0: an alert on an increase cannot see a series that begins at 1.
  for (const counter of [rescued, fenced, leasesLost, findings, repaired]) counter.add(0)
  const failures = meter.createCounter('scheduler.service.failures', {
    description: 'failures of services, by service',
  })

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
  events.on('service.failed', ({ service }) => failures.add(1, { service: serviceLabel(service) }))
}

/** One label for all listeners: there are as many as events. The names of services and parts are few. */
function serviceLabel(service: string): string {
  return service.startsWith(LISTENER_OF) ? 'event listener' : service
}

/** The state of a worker that the gauges show. */
export interface GaugedWorker {
  readonly gauges: Gauges | undefined
  readonly inFlight: number
  readonly connectionsInUse: number
  /** The age of the instant up to which the audit has compared all slots, on any worker; null if that is not known. */
  readonly auditLagSeconds: number | null
  /** The failing services of the worker, by name; null if none fails. */
  readonly failing: Readonly<Record<string, unknown>> | null
}

/** Registers the gauges: the latest counts, and the state of this process. */
export function gaugeWorker(worker: GaugedWorker, meter: Meter): void {
  const gauge = (name: string, description: string): ObservableGauge =>
    meter.createObservableGauge(name, { description })
  gauge('scheduler.schedules.total', 'schedules, by state and target kind').addCallback((result) => {
    for (const { state, targetKind, count } of worker.gauges?.schedules ?? []) {
      result.observe(count, { state, target_kind: targetKind })
    }
  })
  gauge('scheduler.queue.available', 'slots that are due and have not begun').addCallback((result) => {
    if (worker.gauges !== undefined) result.observe(worker.gauges.due)
  })
  gauge('scheduler.queue.scheduled', 'runs that wait for a retry, their turn or a worker').addCallback((result) => {
    if (worker.gauges !== undefined) result.observe(worker.gauges.waiting)
  })
  gauge('scheduler.backlog.age_seconds', 'age of the oldest backlog of slots without lines').addCallback((result) => {
    if (worker.gauges !== undefined) result.observe(worker.gauges.backlogAgeSeconds)
  })
  gauge('pg.replication.lag_seconds', 'lag of the replica that is furthest behind').addCallback((result) => {
    const lag = worker.gauges?.replicationLagSeconds ?? null
    if (lag !== null) result.observe(lag)
  })
  gauge('scheduler.worker.in_flight', 'runs that this worker holds').addCallback((result) => {
    result.observe(worker.inFlight)
  })
  gauge('scheduler.worker.failing_services', 'services of this worker that are failing').addCallback((result) => {
    result.observe(Object.keys(worker.failing ?? {}).length)
  })
  gauge('scheduler.audit.lag_seconds', 'age of the last slots that the audit has compared').addCallback((result) => {
    if (worker.auditLagSeconds !== null) result.observe(worker.auditLagSeconds)
  })
  gauge('pg.connection_pool.in_use', 'connections to Postgres in use').addCallback((result) => {
    result.observe(worker.connectionsInUse, { pool: 'worker' })
  })
}
