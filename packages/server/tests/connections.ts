import type { TestDatabase } from '@carillon/core/testing'

/** Ends once nobody is connected to a database but the test itself: a server notices a goodbye a moment after it. */
export async function untilNobodyIsConnected({ pool }: TestDatabase): Promise<void> {
  for (;;) {
    const { rows } = await pool.query<{ application_name: string }>(
      `select application_name from pg_stat_activity where datname = current_database() and application_name like 'carillon %'`,
    )
    if (rows.length === 0) return
  }
}
