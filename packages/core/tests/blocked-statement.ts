import pg from 'pg'

import type { Pipeline } from './pipeline.ts'

/** Runs `work` while a separate connection holds the locks of a statement. */
export async function whileHeld(
  { database }: Pick<Pipeline, 'database'>,
  statement: string,
  work: () => Promise<void>,
): Promise<void> {
  const client = new pg.Client({ connectionString: database.url })
  await client.connect()
  try {
    await client.query('begin')
    await client.query(statement)
    await work()
    await client.query('commit')
  } finally {
    await client.end()
  }
}

/** Resolves once this many statements wait for a lock. */
export async function whenBlocked({ database }: Pick<Pipeline, 'database'>, statements = 1): Promise<void> {
  for (;;) {
    const { rowCount } = await database.pool.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    if (rowCount !== null && rowCount >= statements) return
  }
}
