import { RUN_TRIGGERS } from '@carillon/api'

import { columns, instant, integer, json, smallint, text, uuid, word } from '../../db/columns.ts'
import { sql } from '../../db/sql.ts'

/** The runs that `FENCE_COLUMNS` are selected from, with their schedules and, if it still exists, the revision of each. */
export const RUNS_WITH_REVISION = sql`runs
  join schedules on schedules.id = runs.schedule_id
  left join schedule_revisions as revisions
    on revisions.schedule_id = runs.schedule_id and revisions.revision = runs.revision`

/** The identity and the fence of runs that a worker holds. */
export const FENCE_COLUMNS = columns('runs', {
  runId: uuid.as(sql`runs.id`),
  scheduleId: uuid,
  scheduledFor: instant,
  tenantId: text,
  projectId: text,
  revision: integer,
  trigger: word('run_trigger', RUN_TRIGGERS),
  workerId: uuid.present,
  token: integer,
  attempt: smallint.as(sql`runs.attempt_count`),
  targetKind: text.as(sql`coalesce(revisions.target_kind, schedules.target_kind)`),
  target: json().orNull.as(sql`revisions.target`),
})
