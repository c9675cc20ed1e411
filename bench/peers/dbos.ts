import { DBOS, DBOSClient, type DBOSConfig } from '@dbos-inc/dbos-sdk'
import { Pool } from 'pg'

import { nowMs, until, within } from '../clock.ts'
import type { Creation, Drain, Ground, Lateness, Peer } from '../measure.ts'
import { cronAt, dailyCron, requireAhead, secondsOf, wholeSecondIn } from './due.ts'
import { inTurn } from './in-turn.ts'
import { versionOf } from './package-version.ts'
import { drainOf, Tally } from './tally.ts'

const APPLICATION = 'bench'
const QUEUE = 'noop'
const CONNECTIONS = 20
const QUEUE_POLL_MS = 10
const LEAD_MS = 4000
const LOAD_MS_PER_SCHEDULE = 0.1
const LATENESS_PATIENCE_MS = 60_000
const LOOK_EVERY_MS = 50

/** DBOS is one per process and knows its workflows by name, so the measurement that runs puts itself here. */
let onCall: (nominal: number) => void = () => undefined

const workflow = DBOS.registerWorkflow(
  (scheduledFor: Date, _context: unknown) => {
    onCall(scheduledFor.getTime())
    return Promise.resolve()
  },
  { name: 'noop' },
)

const silence = () => undefined
const logger = { info: silence, debug: silence, warn: silence, error: silence }

async function launch(ground: Ground, options: Partial<DBOSConfig> = {}): Promise<void> {
  DBOS.setConfig({
    name: APPLICATION,
    systemDatabaseUrl: ground.postgresUrl,
    systemDatabasePoolSize: CONNECTIONS,
    logger,
    ...options,
  })
  await DBOS.launch()
  await DBOS.registerQueue(QUEUE, { minPollingIntervalMs: QUEUE_POLL_MS })
}

async function drain(ground: Ground, work: { count: number; patienceMs: number }): Promise<Drain> {
  const pool = new Pool({ connectionString: ground.postgresUrl, max: 1 })
  const calls = new Tally(work.count)
  onCall = () => {
    calls.note()
  }
  try {
    await launch(ground)
    const dueAt = wholeSecondIn(LEAD_MS + work.count * LOAD_MS_PER_SCHEDULE)
    await loadSchedules(pool, work.count, dueAt)
    requireAhead(dueAt)
    const giveUpAt = dueAt + work.patienceMs
    await within(calls.complete, giveUpAt)
    const lastAt = await lastSuccess(pool, work.count, giveUpAt)
    return drainOf({ count: work.count, dueAt, firstAt: calls.firstAt, lastAt })
  } finally {
    await DBOS.shutdown()
    await pool.end()
  }
}

/** One by its own call, the others copied from it: its call for many writes them one by one. */
async function loadSchedules(pool: Pool, count: number, dueAt: number): Promise<void> {
  await schedule('s0', dueAt)
  await pool.query(
    `insert into dbos.workflow_schedules
    select copy.* from dbos.workflow_schedules, generate_series(1, $1::int - 1) as n,
      json_populate_record(
        workflow_schedules, json_build_object('schedule_id', gen_random_uuid(), 'schedule_name', 's' || n)
      ) as copy`,
    [count],
  )
}

function schedule(scheduleName: string, nominal: number): Promise<void> {
  return DBOS.createSchedule({
    scheduleName,
    workflowFn: workflow,
    schedule: cronAt(nominal),
    options: { cronTimezone: 'UTC', queueName: QUEUE },
  })
}

/** As the workflows' own rows say. A workflow's function ends before its success is written. */
async function lastSuccess(pool: Pool, count: number, giveUpAt: number): Promise<number> {
  for (;;) {
    const { rows } = await pool.query<{ succeeded: number; lastAt: number }>(
      `select count(*)::int as succeeded, max(updated_at)::float8 as "lastAt"
      from dbos.workflow_status where status = 'SUCCESS'`,
    )
    const [row] = rows
    if (row !== undefined && row.succeeded >= count) return row.lastAt
    await within(until(nowMs() + LOOK_EVERY_MS), giveUpAt)
  }
}

async function lateness(ground: Ground, work: { slots: number; spacingMs: number }): Promise<Lateness> {
  const late: number[] = []
  const calls = new Tally(work.slots)
  onCall = (nominal) => {
    late.push(nowMs() - nominal)
    calls.note()
  }
  try {
    await launch(ground)
    const firstAt = wholeSecondIn(LEAD_MS)
    const seconds = secondsOf(firstAt, work)
    await inTurn({ count: work.slots, clients: CONNECTIONS }, (n) => schedule(`s${n}`, seconds[n] ?? firstAt))
    requireAhead(firstAt)
    await within(calls.complete, firstAt + work.slots * work.spacingMs + LATENESS_PATIENCE_MS)
    return late
  } finally {
    await DBOS.shutdown()
  }
}

async function create(ground: Ground, work: { count: number; clients: number }): Promise<Creation> {
  await launch(ground)
  await DBOS.shutdown()
  const client = await DBOSClient.create({
    systemDatabaseUrl: ground.postgresUrl,
    systemDatabasePoolSize: work.clients,
    applicationName: APPLICATION,
    logger,
  })
  try {
    return await inTurn(work, (n) =>
      client.createSchedule({
        scheduleName: `s${n}`,
        workflowName: 'noop',
        schedule: dailyCron(n),
        options: { cronTimezone: 'UTC', queueName: QUEUE },
      }),
    )
  } finally {
    await client.destroy()
  }
}

export const dbos: Peer = {
  name: 'DBOS',
  version: versionOf('@dbos-inc/dbos-sdk'),
  rounds: 1,
  leaves: "the workflow's status with its input and output, and the schedule's last slot",
  setUp:
    `schedules in its database, on a queue without limits that it polls every ${QUEUE_POLL_MS} ms, ${CONNECTIONS} connections; ` +
    'it delays every slot on purpose by up to a tenth of the wait for it and at most 10 s, so the wait is kept short; ' +
    'slots lie on whole seconds',
  drain,
  lateness,
  create,
}
