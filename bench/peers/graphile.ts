import { Logger, run, type Runner } from 'graphile-worker'
import { Pool } from 'pg'

export type Queryable = Pick<Pool, 'query'>

export const TASK = 'noop'
/** Jobs per call of `add_jobs`: smaller batches cost round trips, larger ones take disproportionately long. */
const ADD_BATCH = 500

export interface JobSpec {
  readonly payload: unknown
  readonly runAt: string
  readonly key?: string
}

export const GRAPHILE_CONNECTIONS = 20
/** A delayed job is found only by polling. */
export const GRAPHILE_POLL_MS = 10

export function openPool(connectionString: string, max: number): Pool {
  const pool = new Pool({ connectionString, max })
  // Without listeners a broken connection ends the process. The error appears in the result as slots that never end.
  pool.on('error', () => undefined)
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}

/** Runs Graphile Worker with the configuration of its performance page: a local queue, and completed jobs deleted in batches. */
export function runGraphile(p: {
  pool: Pool
  schema: string
  concurrency: number
  localQueue: number
  task: (payload: unknown) => Promise<void>
}): Promise<Runner> {
  return run({
    pgPool: p.pool,
    schema: p.schema,
    noHandleSignals: true,
    logger: new Logger(() => () => undefined),
    preset: {
      worker: {
        concurrentJobs: p.concurrency,
        pollInterval: GRAPHILE_POLL_MS,
        localQueue: { size: p.localQueue },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
    taskList: { [TASK]: p.task },
  })
}

export async function addJobs(on: Queryable, schema: string, jobs: readonly JobSpec[]): Promise<void> {
  for (let from = 0; from < jobs.length; from += ADD_BATCH) {
    const specs = jobs.slice(from, from + ADD_BATCH).map(({ payload, runAt, key }) => ({
      identifier: TASK,
      payload,
      run_at: runAt,
      job_key: key,
    }))
    await on.query(
      `select from ${schema}.add_jobs(array(select json_populate_recordset(null::${schema}.job_spec, $1::json)))`,
      [JSON.stringify(specs)],
    )
  }
}
