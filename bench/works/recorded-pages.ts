import { createDb, createPool, Scheduler, type Caller, type Db } from '@carillon/core'

import type { Plan } from '../work.ts'
import { noopTarget } from './noop-target.ts'

export { Scheduler } from '@carillon/core'

type Pool = ReturnType<typeof createPool>

/** A scheduler that records the texts of its statements. */
export function recordingScheduler(pool: Pool): { scheduler: Scheduler; db: Db; texts: string[] } {
  const texts: string[] = []
  const db = createDb(pool, { onAnswer: ({ text }) => void texts.push(text) })
  const target = noopTarget()
  return { scheduler: new Scheduler({ db, targets: new Map([[target.kind, target]]) }), db, texts }
}

/** Returns the generic plan of each statement of a page, for the API's role under row-level security. */
export async function explainPage(
  url: string,
  page: string,
  p: { caller: Caller; read: (scheduler: Scheduler) => Promise<unknown> },
): Promise<Plan> {
  const pool = createPool({ connectionString: url, maxConnections: 1 })
  const { scheduler, db, texts } = recordingScheduler(pool)
  try {
    await p.read(scheduler)
    const reads = texts.filter((text) => /^\s*select\b/i.test(text))
    if (reads.length === 0) {
      throw new Error(`expected ${page} to read with a select, got ${texts.length} other statements`)
    }
    const plans = await plansOf(db, p.caller, reads)
    const text = plans.join('\n\n')
    return { page, text, hasSeqScan: await readsWhole(pool, text) }
  } finally {
    await pool.end()
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

async function plansOf(db: Db, { tenantId, projectId }: Caller, reads: readonly string[]): Promise<string[]> {
  return db.withConnection(async (connection) => {
    const run = (text: string): Promise<unknown[]> => connection.run({ text, parameters: [] })
    await run(
      `${db.beginWith('begin')}; set local role carillon_api;
       set local carillon.tenant_id = '${tenantId}'; set local carillon.project_id = '${projectId}'`,
    )
    const plans: string[] = []
    for (const read of reads) {
      const lines = (await run(`explain (generic_plan) ${read}`)) as { 'QUERY PLAN': string }[]
      plans.push(lines.map((line) => line['QUERY PLAN']).join('\n'))
    }
    await connection.commit()
    return plans
  })
}
