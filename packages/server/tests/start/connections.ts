import type { TestDatabase } from '@carillon/core/testing'

/** Resolves once only the test is connected to a database. Postgres notices a closed connection after a moment. */
export async function untilAllDisconnected({ pool }: TestDatabase): Promise<void> {
  for (;;) {
    const { rows } = await pool.query<{ application_name: string }>(
      `select application_name from pg_stat_activity where datname = current_database() and application_name like 'carillon %'`,
    )
    if (rows.length === 0) return
  }
}
