import type { createPool } from '@carillon/core'
import { Logger, run } from 'graphile-worker'

type Pool = ReturnType<typeof createPool>

interface Slot {
  readonly scheduleId: string
  readonly scheduledFor: string
}

interface Waiting extends Slot {
  readonly done: () => void
}

const ENQUEUE_BATCH = 500
const LEDGER_BATCH = 500
const CONCURRENCY = 2000
const YEAR = '365 days'

/** One job per schedule for its next slot, keyed by the slot: what seed 000 describes. */
export async function enqueueJobs(pool: Pool): Promise<void> {
  const { rows } = await pool.query<Slot>(
    `select id as "scheduleId", to_json(next_slot_at) #>> '{}' as "scheduledFor" from carillon.schedules`,
  )
  for (let from = 0; from < rows.length; from += ENQUEUE_BATCH) {
    await addJobs(pool, rows.slice(from, from + ENQUEUE_BATCH), 'now')
  }
}

/**
 * Drains the jobs with Graphile Worker, as well as it can be done: its local queue, batched completion, and a ledger that
 * writes the same rows in batches of 500 with the next slot's jobs in the same transaction.
 * @returns seconds
 */
export async function drainJobs(pool: Pool, count: number): Promise<number> {
  let waiting: Waiting[] = []
  let isWriting = false
  let settled = 0
  const { promise, resolve } = Promise.withResolvers<void>()
  const write = async (): Promise<void> => {
    isWriting = true
    while (waiting.length > 0) {
      const batch = waiting.slice(0, LEDGER_BATCH)
      waiting = waiting.slice(LEDGER_BATCH)
      await writeLedger(pool, batch)
      settled += batch.length
      for (const { done } of batch) done()
      if (settled >= count) resolve()
    }
    isWriting = false
  }
  const startedAt = performance.now()
  const runner = await run({
    pgPool: pool,
    schema: 'carillon_jobs',
    noHandleSignals: true,
    logger: new Logger(() => () => undefined),
    preset: {
      worker: {
        concurrentJobs: CONCURRENCY,
        pollInterval: 1000,
        localQueue: { size: CONCURRENCY },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
    taskList: {
      execute_scheduled_run: (payload) =>
        new Promise<void>((done) => {
          waiting.push({ ...(payload as Slot), done })
          if (!isWriting) void write()
        }),
    },
  })
  await promise
  const seconds = (performance.now() - startedAt) / 1000
  await runner.stop()
  return seconds
}

async function writeLedger(pool: Pool, batch: readonly Slot[]): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query(
      `with slot as (select * from unnest($1::uuid[], $2::timestamptz[]) as s(schedule_id, scheduled_for)),
      advanced as (
        update carillon.schedules set next_slot_at = next_slot_at + interval '${YEAR}', due_at = due_at + interval '${YEAR}',
          run_count = run_count + 1
        from slot where schedules.id = slot.schedule_id
        returning schedules.id, schedules.tenant_id, schedules.project_id
      ), run as (
        insert into carillon.runs (
          schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, attempt_count, begun_at,
          started_at, completed_at
        )
        select id, scheduled_for, uuidv7(), tenant_id, project_id, 1, 'schedule', 'succeeded', 1, now(), now(), now()
        from advanced join slot on slot.schedule_id = advanced.id
        returning *
      )
      insert into carillon.attempts (
        schedule_id, scheduled_for, attempt, tenant_id, project_id, worker_id, outcome, started_at, completed_at
      )
      select schedule_id, scheduled_for, 1, tenant_id, project_id, schedule_id, 'succeeded', started_at, completed_at from run`,
      [batch.map(({ scheduleId }) => scheduleId), batch.map(({ scheduledFor }) => scheduledFor)],
    )
    await addJobs(client, batch, 'next')
    await client.query('commit')
  } finally {
    client.release()
  }
}

async function addJobs(on: Pick<Pool, 'query'>, slots: readonly Slot[], when: 'now' | 'next'): Promise<void> {
  const specs = slots.map(({ scheduleId, scheduledFor }) => ({
    identifier: 'execute_scheduled_run',
    payload: { scheduleId, scheduledFor },
    run_at: when === 'now' ? scheduledFor : new Date(Date.parse(scheduledFor) + 365 * 86_400_000).toISOString(),
    job_key: `${scheduleId}:${scheduledFor}:${when}`,
  }))
  await on.query(
    'select from carillon_jobs.add_jobs(array(select json_populate_recordset(null::carillon_jobs.job_spec, $1::json)))',
    [JSON.stringify(specs)],
  )
}
