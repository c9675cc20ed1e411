import { makeWorkerUtils, runMigrations, type Runner } from 'graphile-worker'
import type { Pool } from 'pg'

import { nowMs, until, within } from '../clock.ts'
import { leadOf, requireAhead } from '../lead-time.ts'
import type { Creation, Drain, Ground, Lateness, Peer } from '../measure.ts'
import { addJobs, GRAPHILE_CONNECTIONS, GRAPHILE_POLL_MS, openPool, runGraphile, TASK } from './graphile.ts'
import { inTurn } from './in-turn.ts'
import { versionOf } from './package-version.ts'
import { drainOf, LateCalls, Tally } from './tally.ts'

const SCHEMA = 'graphile_worker'
const CONCURRENCY = 24
const LOCAL_QUEUE = 500
const LEAD_MS = 2000
const LOAD_MS_PER_JOB = 0.2
const DAY_MS = 86_400_000
const LOOK_EVERY_MS = 5

async function prepare(ground: Ground, connections: number): Promise<Pool> {
  const pool = openPool(ground.postgresUrl, connections)
  await runMigrations({ pgPool: pool, schema: SCHEMA })
  return pool
}

async function drain(ground: Ground, work: { count: number; patienceMs: number }): Promise<Drain> {
  const pool = await prepare(ground, GRAPHILE_CONNECTIONS)
  const calls = new Tally(work.count)
  let runner: Runner | undefined
  try {
    const dueAt = Math.ceil(nowMs() + leadOf(LEAD_MS) + work.count * LOAD_MS_PER_JOB)
    const runAt = new Date(dueAt).toISOString()
    await addJobs(
      pool,
      SCHEMA,
      Array.from({ length: work.count }, (_, n) => ({ payload: { n }, runAt })),
    )
    await pool.query(`vacuum (analyze) ${SCHEMA}._private_jobs`)
    const task = () => {
      calls.note()
      return Promise.resolve()
    }
    runner = await runGraphile({ pool, schema: SCHEMA, concurrency: CONCURRENCY, localQueue: LOCAL_QUEUE, task })
    requireAhead(dueAt)
    const giveUpAt = dueAt + work.patienceMs
    await within(calls.complete, giveUpAt)
    const lastAt = await lastDeletion(pool, giveUpAt)
    return drainOf({ count: work.count, dueAt, firstAt: calls.firstAt, lastAt })
  } finally {
    await runner?.stop()
    await pool.end()
  }
}

/** Graphile Worker deletes a completed job and emits nothing, so this polls for it. */
async function lastDeletion(pool: Pool, giveUpAt: number): Promise<number> {
  for (;;) {
    const { rows } = await pool.query<{ left: boolean }>(
      `select exists (select from ${SCHEMA}._private_jobs) as "left"`,
    )
    if (rows[0]?.left !== true) return nowMs()
    await within(until(nowMs() + LOOK_EVERY_MS), giveUpAt)
  }
}

async function lateness(ground: Ground, work: { slots: number; spacingMs: number }): Promise<Lateness> {
  const pool = await prepare(ground, GRAPHILE_CONNECTIONS)
  const calls = new LateCalls(work.slots)
  const task = (payload: unknown) => {
    // `addJobs` below wrote this payload.
    calls.note((payload as { nominal: number }).nominal)
    return Promise.resolve()
  }
  const runner = await runGraphile({ pool, schema: SCHEMA, concurrency: CONCURRENCY, localQueue: LOCAL_QUEUE, task })
  try {
    const firstAt = Math.ceil(nowMs()) + leadOf(LEAD_MS)
    const nominals = Array.from({ length: work.slots }, (_, n) => firstAt + n * work.spacingMs)
    const jobs = nominals.map((nominal) => ({ payload: { nominal }, runAt: new Date(nominal).toISOString() }))
    await addJobs(pool, SCHEMA, jobs)
    requireAhead(firstAt)
    return await calls.all(firstAt + work.slots * work.spacingMs)
  } finally {
    await runner.stop()
    await pool.end()
  }
}

async function create(ground: Ground, work: { count: number; clients: number }): Promise<Creation> {
  const pool = await prepare(ground, work.clients)
  try {
    const utils = await makeWorkerUtils({ pgPool: pool, schema: SCHEMA })
    try {
      return await inTurn(work, (n) =>
        utils.addJob(TASK, { n }, { runAt: new Date(nowMs() + DAY_MS), jobKey: `s${n}` }),
      )
    } finally {
      await utils.release()
    }
  } finally {
    await pool.end()
  }
}

export const graphileJobs: Peer = {
  name: 'Graphile Worker, bare jobs',
  version: versionOf('graphile-worker'),
  rounds: 1,
  leaves: 'nothing: a job is deleted when it is done, and there is no schedule and no next slot',
  setUp:
    `${CONCURRENCY} jobs at a time from a local queue of ${LOCAL_QUEUE}, deleted in batches, ` +
    `polling every ${GRAPHILE_POLL_MS} ms; a create is one job for tomorrow`,
  drain,
  lateness,
  create,
}
