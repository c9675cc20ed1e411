import { PgBoss, type ConstructorOptions, type WorkOptions } from 'pg-boss'

import { within } from '../clock.ts'
import { requireAhead } from '../lead-time.ts'
import type { Creation, Drain, Ground, Lateness, Peer } from '../measure.ts'
import { cronAt, dailyCron, secondsOf, wholeSecondAfterLoading } from './due.ts'
import { CONNECTIONS, inTurn } from './in-turn.ts'
import { lastEnd, type Ends } from './last-end.ts'
import { versionOf } from './package-version.ts'
import { drainOf, LateCalls, Tally } from './tally.ts'

const QUEUE = 'noop'

/** The shortest intervals that pg-boss permits: it polls for due schedules and for their jobs once a second. */
const SCHEDULING: ConstructorOptions = { cronMonitorIntervalSeconds: 1, cronWorkerIntervalSeconds: 1 }
const WORK = {
  batchSize: 500,
  burstWhenBatchFull: true,
  pollingIntervalSeconds: 0.5,
  notifyPollingIntervalSeconds: 0.5,
} satisfies WorkOptions

interface Slot {
  readonly nominal: number
}

async function startBoss(ground: Ground, options: ConstructorOptions): Promise<PgBoss> {
  const boss = new PgBoss({ connectionString: ground.postgresUrl, max: CONNECTIONS, useListenNotify: true, ...options })
  // Without a listener an error ends the process. The error appears in the result as slots that never end.
  boss.on('error', () => undefined)
  await boss.start()
  await boss.createQueue(QUEUE, { notify: true })
  return boss
}

async function drain(ground: Ground, work: { count: number; patienceMs: number }): Promise<Drain> {
  const boss = await startBoss(ground, SCHEDULING)
  const calls = new Tally(work.count)
  try {
    await boss.work(QUEUE, WORK, (jobs) => {
      for (let n = 0; n < jobs.length; n += 1) calls.note()
      return Promise.resolve()
    })
    const dueAt = wholeSecondAfterLoading(work.count)
    await loadSchedules(boss, work.count, dueAt)
    requireAhead(dueAt)
    const giveUpAt = dueAt + work.patienceMs
    await within(calls.complete, giveUpAt)
    const lastAt = await lastEnd({ count: work.count, giveUpAt }, () => completions(boss))
    return drainOf({ count: work.count, dueAt, firstAt: calls.firstAt, lastAt })
  } finally {
    await boss.stop({ graceful: false })
  }
}

/** The peer's own call creates the first schedule. The others are copied from its row, because there is no bulk call. */
async function loadSchedules(boss: PgBoss, count: number, dueAt: number): Promise<void> {
  await boss.schedule(QUEUE, cronAt(dueAt), { nominal: dueAt }, { key: 's0' })
  await boss.getDb().executeSql(
    `insert into pgboss.schedule (name, key, kind, cron, timezone, data, options, created_on, updated_on)
    select name, 's' || n, kind, cron, timezone, data, options, created_on, updated_on
    from pgboss.schedule, generate_series(1, $1::int - 1) as n`,
    [count],
  )
}

async function completions(boss: PgBoss): Promise<Ends | undefined> {
  const { rows }: { rows: Ends[] } = await boss.getDb().executeSql(
    `select count(*)::int as ended, extract(epoch from max(completed_on))::float8 * 1000 as "lastAt"
    from pgboss.job where name = $1 and state = 'completed'`,
    [QUEUE],
  )
  return rows[0]
}

async function lateness(ground: Ground, work: { slots: number; spacingMs: number }): Promise<Lateness> {
  const boss = await startBoss(ground, SCHEDULING)
  const calls = new LateCalls(work.slots)
  try {
    await boss.work<Slot>(QUEUE, WORK, (jobs) => {
      for (const { data } of jobs) calls.note(data.nominal)
      return Promise.resolve()
    })
    const firstAt = wholeSecondAfterLoading(work.slots)
    const seconds = secondsOf(firstAt, work)
    await inTurn({ count: work.slots, clients: CONNECTIONS }, (n) => {
      const nominal = seconds[n] ?? firstAt
      return boss.schedule(QUEUE, cronAt(nominal), { nominal }, { key: `s${n}` })
    })
    requireAhead(firstAt)
    return await calls.all(firstAt + work.slots * work.spacingMs)
  } finally {
    await boss.stop({ graceful: false })
  }
}

async function create(ground: Ground, work: { count: number; clients: number }): Promise<Creation> {
  const boss = await startBoss(ground, { schedule: false, supervise: false, max: work.clients })
  try {
    return await inTurn(work, (n) => boss.schedule(QUEUE, dailyCron(n), null, { key: `s${n}` }))
  } finally {
    await boss.stop({ graceful: false })
  }
}

export const pgBoss: Peer = {
  name: 'pg-boss',
  version: versionOf('pg-boss'),
  rounds: 1,
  leaves: 'the completed job, and the completed job that forwarded it',
  setUp:
    'one instance that looks for due schedules every second, the least it permits; what is due it forwards to its queue in ' +
    'batches of 50, one a second, which cannot be set; the queue wakes its worker with NOTIFY and is worked in batches of 500; ' +
    'slots lie on whole seconds',
  drain,
  lateness,
  create,
}
