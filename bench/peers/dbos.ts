import { DBOS, DBOSClient } from '@dbos-inc/dbos-sdk'
import { Pool } from 'pg'

import { within } from '../clock.ts'
import { requireAhead } from '../lead-time.ts'
import type { Creation, Drain, Ground, Lateness, Peer } from '../measure.ts'
import { cronAt, dailyCron, SECOND, wholeSecondAfterLoading } from './due.ts'
import { CONNECTIONS, inTurn } from './in-turn.ts'
import { lastEnd, type Ends } from './last-end.ts'
import { versionOf } from './package-version.ts'
import { drainOf, LateCalls, Tally } from './tally.ts'

const APPLICATION = 'bench'
const QUEUE = 'noop'
const QUEUE_POLL_MS = 10
const EVERY_SECOND = '* * * * * *'

/** DBOS allows one instance per process and finds workflows by name, so the current measurement is stored here. */
let onCall: (nominal: number, context: unknown) => void = () => undefined

const workflow = DBOS.registerWorkflow(
  (scheduledFor: Date, context: unknown) => {
    onCall(scheduledFor.getTime(), context)
    return Promise.resolve()
  },
  { name: 'noop' },
)

const silence = () => undefined
const logger = { info: silence, debug: silence, warn: silence, error: silence }

async function launch(ground: Ground): Promise<void> {
  DBOS.setConfig({
    name: APPLICATION,
    systemDatabaseUrl: ground.postgresUrl,
    systemDatabasePoolSize: CONNECTIONS,
    logger,
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
    const dueAt = wholeSecondAfterLoading(work.count)
    await loadSchedules(pool, work.count, dueAt)
    requireAhead(dueAt)
    const giveUpAt = dueAt + work.patienceMs
    await within(calls.complete, giveUpAt)
    const lastAt = await lastEnd({ count: work.count, giveUpAt }, () => successes(pool))
    return drainOf({ count: work.count, dueAt, firstAt: calls.firstAt, lastAt })
  } finally {
    await DBOS.shutdown()
    await pool.end()
  }
}

/** The peer's own call creates the first schedule. The others are copied from its row, because the bulk call inserts one by one. */
async function loadSchedules(pool: Pool, count: number, dueAt: number): Promise<void> {
  await schedule(0, cronAt(dueAt))
  await pool.query(
    `insert into dbos.workflow_schedules
    select copy.* from dbos.workflow_schedules, generate_series(1, $1::int - 1) as n,
      json_populate_record(
        workflow_schedules, json_build_object('schedule_id', gen_random_uuid(), 'schedule_name', 's' || n)
      ) as copy`,
    [count],
  )
}

function schedule(n: number, cron: string): Promise<void> {
  return DBOS.createSchedule({
    scheduleName: `s${n}`,
    workflowFn: workflow,
    schedule: cron,
    context: n,
    options: { cronTimezone: 'UTC', queueName: QUEUE },
  })
}

async function successes(pool: Pool): Promise<Ends | undefined> {
  const { rows } = await pool.query<Ends>(
    `select count(*)::int as ended, max(updated_at)::float8 as "lastAt"
    from dbos.workflow_status where status = 'SUCCESS'`,
  )
  return rows[0]
}

/**
 * Measures with schedules that are due every second, as many as the slots per second. DBOS delays a slot by a share of the time until it is
 * due. So if all slots were created at the start, the last ones would be seconds late for that reason alone.
 */
async function lateness(ground: Ground, work: { slots: number; spacingMs: number }): Promise<Lateness> {
  const schedules = Math.ceil(SECOND / work.spacingMs)
  const calls = new LateCalls(work.slots)
  try {
    await launch(ground)
    const firstAt = wholeSecondAfterLoading(schedules)
    // The slots that count are determined beforehand. If the first ones to be called counted, the latest ones of the last second would be
    // left out.
    onCall = (nominal, n) => {
      const slot = ((nominal - firstAt) / SECOND) * schedules + Number(n)
      if (nominal >= firstAt && slot < work.slots) calls.note(nominal)
    }
    await inTurn({ count: schedules, clients: CONNECTIONS }, (n) => schedule(n, EVERY_SECOND))
    requireAhead(firstAt)
    return await calls.all(firstAt + (work.slots / schedules) * SECOND)
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
    'it delays every slot on purpose by up to a tenth of the wait for it and at most 10 s, so a drain is loaded shortly ' +
    'before it is due, and sparse slots are of schedules of every second, as many as slots are wanted in a second, which it delays by up to 100 ms; ' +
    'slots lie on whole seconds',
  drain,
  lateness,
  create,
}
