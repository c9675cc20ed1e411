import type { Clock } from '../clock.ts'
import type { Jobs } from '../engine.ts'
import { jobKey } from '../keys.ts'
import { transact, type Db } from '../store/database.ts'
import { lockSchedules } from '../store/schedule-lock.ts'
import { findSurplusJobs, type SurplusJob } from '../store/surplus-jobs.ts'
import { findStrandedRuns, type SlotName } from '../store/waiting-runs.ts'
import { findOrphanedRuns } from '../store/workers.ts'
import type { FindingList } from './finding-list.ts'

export interface JobAuditDeps {
  readonly db: Db
  readonly clock: Clock
  readonly jobs: Jobs
}

/** Of each kind in one audit; what is left is found by the next. */
const FOUND_MAX = 10_000
const JOBS_PER_REPAIR = 500
const KEY = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):(.+)$/

/** Holds the runs that are not over against who is to see them through: a worker's lease, or a job. */
export async function auditJobs(deps: JobAuditDeps, found: FindingList): Promise<void> {
  await noteOrphanedRuns(deps, found)
  await enqueueStrandedRuns(deps, found)
  await withdrawSurplusJobs(deps, found)
}

/** Only told: to go on with them is the rescuer's, which knows the rules of a lost attempt. */
async function noteOrphanedRuns({ db, clock }: JobAuditDeps, found: FindingList): Promise<void> {
  for (const run of await findOrphanedRuns(db, { limit: FOUND_MAX, now: clock.databaseNow() })) {
    const { scheduleId, scheduledFor, runId, workerId } = run
    const detail = `run ${runId} is held by worker ${workerId}, which has no lease`
    found.add({ kind: 'run_without_lease', scheduleId, scheduledFor, detail, isRepaired: false })
  }
}

async function enqueueStrandedRuns({ db, clock, jobs }: JobAuditDeps, found: FindingList): Promise<void> {
  const stranded = await findStrandedRuns(db, { limit: FOUND_MAX, overdueMs: null, now: clock.databaseNow() })
  for (const batch of batchesOf(stranded)) {
    await transact(db, clock, async (tx) => {
      await lockSchedules(tx, { scheduleIds: batch.map(({ scheduleId }) => scheduleId) })
      // Should one have been taken meanwhile, its job finds nothing to do.
      await jobs.enqueue(tx, batch)
    })
    for (const { scheduleId, scheduledFor } of batch) {
      const detail = 'the run waits, and no job would have woken it'
      found.add({ kind: 'run_without_job', scheduleId, scheduledFor, detail, isRepaired: true })
    }
  }
}

async function withdrawSurplusJobs(deps: JobAuditDeps, found: FindingList): Promise<void> {
  const surplus = await findSurplusJobs(deps.db, { keys: null, limit: FOUND_MAX })
  for (const batch of batchesOf(surplus)) {
    const withdrawn = await withdraw(deps, batch.flatMap(slotOf))
    for (const job of batch) {
      const [slot] = slotOf(job)
      found.add({
        kind: 'job_without_run',
        scheduleId: slot?.scheduleId ?? null,
        scheduledFor: slot?.scheduledFor ?? null,
        detail: `job ${job.task} ${job.key ?? 'without a key'} waits for a run that does not`,
        isRepaired: job.key !== null && withdrawn.has(job.key),
      })
    }
  }
}

/** Looks again under the locks: a retry that was settled meanwhile has a job of the same key, and needs it. */
async function withdraw({ db, clock, jobs }: JobAuditDeps, slots: readonly SlotName[]): Promise<Set<string | null>> {
  if (slots.length === 0) return new Set()
  return transact(db, clock, async (tx) => {
    await lockSchedules(tx, { scheduleIds: slots.map(({ scheduleId }) => scheduleId) })
    const keys = slots.map(({ scheduleId, scheduledFor }) => jobKey(scheduleId, scheduledFor))
    const surplus = await findSurplusJobs(tx, { keys, limit: keys.length })
    await jobs.withdraw(tx, surplus.flatMap(slotOf))
    return new Set(surplus.map(({ key }) => key))
  })
}

/** None if the key is not one of ours: then it is for somebody else to take back. */
function slotOf({ key, task }: SurplusJob): SlotName[] {
  const [, scheduleId, slotText] = KEY.exec(key ?? '') ?? []
  const scheduledFor = Date.parse(slotText ?? '')
  if (scheduleId === undefined || Number.isNaN(scheduledFor) || jobKey(scheduleId, scheduledFor) !== key) return []
  return [{ scheduleId, scheduledFor, targetKind: task.slice(task.indexOf('.') + 1) }]
}

function* batchesOf<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  for (let start = 0; start < items.length; start += JOBS_PER_REPAIR) yield items.slice(start, start + JOBS_PER_REPAIR)
}
