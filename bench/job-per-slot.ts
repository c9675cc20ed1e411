import type { createPool } from '@carillon/core'
import { Logger, run } from 'graphile-worker'

export type Pool = ReturnType<typeof createPool>

export interface Slot {
  readonly scheduleId: string
  readonly scheduledFor: string
}

type Queryable = Pick<Pool, 'query'>

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
 * Drains the jobs with Graphile Worker, as well as it can be done: its local queue, batched completion, and the same ledger
 * in batches of 500. A slot's run is written before its target would be called, and its attempt, state and the next slot's
 * job after it, as in the pipeline.
 * @returns seconds
 */
export async function drainJobs(pool: Pool, count: number): Promise<number> {
  const begin = batched((slots) => inTransaction(pool, (client) => beginSlots(client, slots)))
  const settle = batched((slots) =>
    inTransaction(pool, async (client) => {
      await settleSlots(client, slots)
      await addJobs(client, slots, 'next')
    }),
  )
  let settled = 0
  const { promise, resolve } = Promise.withResolvers<void>()
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
      execute_scheduled_run: async (payload) => {
        await begin(payload as Slot)
        await settle(payload as Slot)
        settled += 1
        if (settled === count) resolve()
      },
    },
  })
  await promise
  const seconds = (performance.now() - startedAt) / 1000
  await runner.stop()
  return seconds
}

/** Gathers slots while a batch is being written. */
function batched(write: (slots: readonly Slot[]) => Promise<void>): (slot: Slot) => Promise<void> {
  let waiting: { slot: Slot; done: () => void }[] = []
  let isWriting = false
  const writeAll = async (): Promise<void> => {
    isWriting = true
    while (waiting.length > 0) {
      const batch = waiting.slice(0, LEDGER_BATCH)
      waiting = waiting.slice(LEDGER_BATCH)
      await write(batch.map(({ slot }) => slot))
      for (const { done } of batch) done()
    }
    isWriting = false
  }
  return (slot) =>
    new Promise((done) => {
      waiting.push({ slot, done })
      if (!isWriting) void writeAll()
    })
}

export async function inTransaction<Result>(pool: Pool, work: (client: Queryable) => Promise<Result>): Promise<Result> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const result = await work(client)
    await client.query('commit')
    return result
  } finally {
    client.release()
  }
}

export async function beginSlots(client: Queryable, slots: readonly Slot[]): Promise<void> {
  await client.query(
    `with slot as (select * from unnest($1::uuid[], $2::timestamptz[]) as s(schedule_id, scheduled_for)),
    advanced as (
      update carillon.schedules set next_slot_at = next_slot_at + $3::interval, due_at = due_at + $3::interval,
        run_count = run_count + 1
      from slot where schedules.id = slot.schedule_id
      returning schedules.id, schedules.tenant_id, schedules.project_id
    )
    insert into carillon.runs (
      schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, attempt_count, token, worker_id,
      begun_at, started_at
    )
    select id, scheduled_for, uuidv7(), tenant_id, project_id, 1, 'schedule', 'running', 1, 1, id, now(), now()
    from advanced join slot on slot.schedule_id = advanced.id`,
    [...columnsOf(slots), YEAR],
  )
}

export async function settleSlots(client: Queryable, slots: readonly Slot[]): Promise<void> {
  await client.query(
    `with slot as (select * from unnest($1::uuid[], $2::timestamptz[]) as s(schedule_id, scheduled_for)),
    settled as (
      update carillon.runs set state = 'succeeded', worker_id = null, completed_at = now()
      from slot
      where runs.schedule_id = slot.schedule_id and runs.scheduled_for = slot.scheduled_for and runs.state = 'running'
      returning runs.*
    )
    insert into carillon.attempts (
      schedule_id, scheduled_for, attempt, tenant_id, project_id, worker_id, outcome, started_at, completed_at
    )
    select schedule_id, scheduled_for, 1, tenant_id, project_id, schedule_id, 'succeeded', started_at, completed_at
    from settled`,
    columnsOf(slots),
  )
}

function columnsOf(slots: readonly Slot[]): [string[], string[]] {
  return [slots.map(({ scheduleId }) => scheduleId), slots.map(({ scheduledFor }) => scheduledFor)]
}

async function addJobs(on: Queryable, slots: readonly Slot[], when: 'now' | 'next'): Promise<void> {
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
