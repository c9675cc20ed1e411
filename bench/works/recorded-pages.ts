import { createDb, createPool, Scheduler, type Caller, type Db } from '@carillon/core'
import { CompiledQuery, type QueryResult } from 'kysely'

import type { Plan } from '../work.ts'
import { noopTarget } from './noop-target.ts'

export { Scheduler } from '@carillon/core'

type Pool = ReturnType<typeof createPool>

/** A scheduler that records its statements. */
export function recordingScheduler(pool: Pool): { scheduler: Scheduler; db: Db; queries: CompiledQuery[] } {
  const queries: CompiledQuery[] = []
  const log = ({ query }: { query: CompiledQuery }): void => void queries.push(query)
  const db = createDb(pool, { log })
  const target = noopTarget()
  return { scheduler: new Scheduler({ db, targets: new Map([[target.kind, target]]) }), db, queries }
}

/** Returns the generic plan of each statement of a page, for the API's role under row-level security. */
export async function explainPage(
  url: string,
  page: string,
  p: { caller: Caller; read: (scheduler: Scheduler) => Promise<unknown> },
): Promise<Plan> {
  const pool = createPool({ connectionString: url, maxConnections: 1 })
  const { scheduler, db, queries } = recordingScheduler(pool)
  try {
    await p.read(scheduler)
    const reads = queries.filter(({ sql }) => /^\s*select\b/i.test(sql))
    if (reads.length === 0) {
      throw new Error(`expected ${page} to read with a select, got ${queries.length} other statements`)
    }
    const texts = await db.transaction().execute(async (tx) => {
      for (const setting of settingsOf(p.caller)) await tx.executeQuery(CompiledQuery.raw(setting))
      const plans: string[] = []
      for (const { sql } of reads) {
        plans.push(textOf(await tx.executeQuery(CompiledQuery.raw(`explain (generic_plan) ${sql}`))))
      }
      return plans
    })
    const text = texts.join('\n\n')
    return { page, text, hasSeqScan: await readsWhole(pool, text) }
  } finally {
    await db.destroy()
  }
}

/** True if the plan scans a whole table. An empty table, such as a future month, does not count. */
async function readsWhole(pool: Pool, text: string): Promise<boolean> {
  const tables = [...text.matchAll(/Seq Scan on (\w+)/g)].map((match) => match[1])
  const { rows } = await pool.query(
    `select from pg_class where relnamespace = 'carillon'::regnamespace and relname = any($1::text[]) and pg_relation_size(oid) > 0`,
    [tables],
  )
  return rows.length > 0
}

function settingsOf({ tenantId, projectId }: Caller): string[] {
  return [
    'set local role carillon_api',
    `set local carillon.tenant_id = '${tenantId}'`,
    `set local carillon.project_id = '${projectId}'`,
  ]
}

function textOf({ rows }: QueryResult<unknown>): string {
  return (rows as { 'QUERY PLAN': string }[]).map((row) => row['QUERY PLAN']).join('\n')
}
