import { setTimeout as sleep } from 'node:timers/promises'

import type { Scheduler } from '@carillon/core'

import { nowMs, within } from '../clock.ts'
import { dueAfterLoading, requireWaiting } from '../lead-time.ts'
import { loadSchedules } from '../load-schedules.ts'
import type { Reading, Work } from '../work.ts'
import { openPool, postmasterOf } from './bench-pool.ts'
import { Child } from './child.ts'
import { NOOP } from './noop-target.ts'
import { cpuSecondsOf, cpuSecondsOfFamily } from './process-usage.ts'
import { openScheduler } from './scheduler.ts'
import type { WorkerMessage } from './worker-process.ts'
import { allSettled } from './workers.ts'

const TENANT = 'audit'
const HOUR_SECONDS = 3600
/** The time for the worker's process to start. */
const START_MS = 4000
const DRAIN_MS = 120_000
const AUDIT_MS = 240_000
const LOOK_EVERY_MS = 50
const NOTE = 'of one core for an hour, with all else that the process did meanwhile'

/** Writes the history of changes, which the library writes with each schedule and the bulk load does not. */
const CREATED = `
  insert into carillon.schedule_changes (
    schedule_id, tenant_id, project_id, change, revision, next_slot_at, actor_subject, reason, changed_at
  )
  select id, tenant_id, project_id, 'created', 1, next_slot_at, created_by_subject, null, created_at from carillon.schedules`

export const auditWork: Work<'audit'> = {
  name: 'audit',
  title: 'Audit: what it costs',
  async measure(bench, { slots }) {
    const part = {
      subject: 'Carillon',
      size: slots,
      measure: ({ postgresUrl }: { postgresUrl: string }) => auditAfterDrain(postgresUrl, slots),
    }
    await bench.interleave([part], { isMigrated: true })
  },
}

async function auditAfterDrain(url: string, slots: number): Promise<Reading[]> {
  await using pool = openPool(url)
  const dueAt = dueAfterLoading(slots) + START_MS
  const startAt = new Date(dueAt).toISOString()
  const cadence = JSON.stringify({ kind: 'interval', every: `PT24H#S`, startAt, timezone: 'UTC' })
  await loadSchedules(pool, { count: slots, kind: NOOP, firstSlotAt: dueAt, spacingMs: 0, tenant: TENANT, cadence })
  await pool.query(CREATED)
  await using worker = await Child.start<WorkerMessage>('worker-process.ts', { url })
  requireWaiting(dueAt)
  await within(allSettled([worker], slots), dueAt + DRAIN_MS)
  const postgres = await postmasterOf(pool)
  const used = () => ({ worker: cpuSecondsOf(worker.pid), postgres: cpuSecondsOfFamily(postgres), at: nowMs() })
  await using open = openScheduler(url, 1)
  const before = used()
  await within(Promise.race([auditOf(open.scheduler, slots), worker.failed]), nowMs() + AUDIT_MS)
  const after = used()
  const percent = (seconds: number): number => (100 * seconds) / HOUR_SECONDS
  return [
    { metric: 'cpuPercent', unit: '%', value: percent(after.worker - before.worker), note: NOTE },
    { metric: 'postgresCpuPercent', unit: '%', value: percent(after.postgres - before.postgres) },
    { metric: 'auditSeconds', unit: 's', value: (after.at - before.at) / 1000 },
  ]
}

/** Requests a full audit, waits for its end, and fails unless it compared every slot and found nothing. */
async function auditOf(scheduler: Scheduler, slots: number): Promise<void> {
  const requestedAt = await scheduler.requestAudit()
  for (;;) {
    const audit = await scheduler.latestAudit()
    if (audit?.isWhole === true && audit.startedAt >= requestedAt) {
      if (audit.slots === slots && audit.findings === 0) return
      throw new Error(
        `expected an audit of ${slots} slots that finds nothing, got ${audit.slots} and ${audit.findings}`,
      )
    }
    await sleep(LOOK_EVERY_MS)
  }
}
