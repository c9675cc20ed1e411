import type { createPool } from '@carillon/core'

import { dailyCron } from '../peers/due.ts'
import { POLICY } from '../policy.ts'
import { NOOP } from './noop-target.ts'

type Queryable = Pick<ReturnType<typeof createPool>, 'query'>

const TARGET = JSON.stringify({ kind: NOOP })

/** Inserts the rows that Carillon keeps of a schedule, in one statement as Carillon does. */
function insertText(given: string): string {
  return `
    with given as materialized (
      select uuidv7() as id, uuidv7() as grant_id, name, cadence, date_trunc('day', now()) + interval '1 day' as slot
      from ${given}
    ), schedule as (
      insert into carillon.schedules (
        id, tenant_id, project_id, owner_subject, target_kind, state, revision, grant_id, next_slot_at, due_at,
        auto_pause_threshold, created_by_subject, created_at
      )
      select id, 'default', 'default', 'user:bench', '${NOOP}', 'active', 1, grant_id, slot, slot, 10, 'user:bench', now()
      from given
    ), own_grant as (
      insert into carillon.execution_grants (
        id, tenant_id, project_id, subject, scopes, created_by_subject, created_at, schedule_id
      )
      select grant_id, 'default', 'default', 'user:bench', array['${NOOP}:call:nothing'], 'user:bench', now(), id
      from given
    ), revision as (
      insert into carillon.schedule_revisions (
        schedule_id, revision, tenant_id, project_id, name, cadence_kind, cadence_cron, target_kind, target, policy,
        grant_id, required_scope, changed_by_subject, changed_at
      )
      select id, 1, 'default', 'default', name, 'cron', cadence, '${NOOP}', $3::json, $4::json, grant_id,
        '${NOOP}:call:nothing', 'user:bench', now()
      from given
    )
    insert into carillon.schedule_changes (
      schedule_id, tenant_id, project_id, change, revision, next_slot_at, actor_subject, reason, changed_at
    )
    select id, 'default', 'default', 'created', 1, slot, 'user:bench', null, now()
    from given`
}

const INSERT_ONE = insertText('(select $1::text as name, $2::json as cadence) as one')
const INSERT_MANY = insertText('unnest($1::text[], $2::json[]) as many (name, cadence)')

export async function insertBareSchedule(client: Queryable, n: number): Promise<void> {
  await client.query(INSERT_ONE, [nameOf(n), cadenceOf(n), TARGET, POLICY])
}

export async function insertBareSchedules(client: Queryable, numbers: readonly number[]): Promise<void> {
  await client.query(INSERT_MANY, [numbers.map(nameOf), numbers.map(cadenceOf), TARGET, POLICY])
}

function nameOf(n: number): string {
  return `schedule ${n}`
}

function cadenceOf(n: number): string {
  return JSON.stringify({ kind: 'cron', expression: dailyCron(n), timezone: 'UTC' })
}
