import { sql } from 'kysely'

/** What `jobKey` of ../keys.ts makes of a run, in SQL. A test holds the two against each other. */
export const JOB_KEY_OF_RUN = sql`
  runs.schedule_id::text || ':' || to_char(runs.scheduled_for at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`
