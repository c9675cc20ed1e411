import type { Pool } from 'pg'

import { POLICY } from './policy.ts'

type Queryable = Pick<Pool, 'query'>

/** Active schedules, each with one slot ahead. */
export interface ScheduleLoad {
  readonly count: number
  readonly kind: string
  /** The instant of the first slot, in epoch milliseconds. The others follow at `spacingMs`. */
  readonly firstSlotAt: number
  readonly spacingMs: number
  /** How many tenants own the schedules, in turn. @default 100 */
  readonly tenants?: number
  /** The prefix of the tenants' names: `<tenant>-0`, `<tenant>-1`. @default 'tenant' */
  readonly tenant?: string
  /** The target without its payload. Each schedule gets a payload of its own. @default a target with only its kind */
  readonly target?: { readonly kind: string; readonly [field: string]: unknown }
  /** @default '<kind>:call:nothing' */
  readonly requiredScope?: string
  /** The policy as JSON. @default a policy without retries */
  readonly policy?: string
  /** The cadence as JSON. `#` stands for a number that is different for each schedule. @default a cadence with one slot in 25 years */
  readonly cadence?: string
}

const BATCH = 50_000
/** This cadence has one slot in 25 years, so no schedule comes due again during a measurement. */
const CADENCE = JSON.stringify({
  kind: 'interval',
  every: 'P9000D',
  startAt: new Date(0).toISOString(),
  timezone: 'UTC',
})

/** Fills a database with schedules in bulk, as an import would, and then vacuums it as autovacuum would do overnight. */
export async function loadSchedules(pool: Queryable, load: ScheduleLoad): Promise<void> {
  await insertSchedules(pool, load)
  await settleDown(pool)
}

const LOADED = ['schedules', 'schedule_revisions', 'execution_grants', 'live_schedules']

/** Vacuums and checkpoints, so that a measurement does not pay for the load. */
export async function settleDown(pool: Queryable): Promise<void> {
  for (const table of LOADED) await pool.query(`vacuum (analyze) carillon.${table}`)
  await pool.query('checkpoint')
}

/** @param signal ends the load between two batches */
export async function insertSchedules(pool: Queryable, load: ScheduleLoad, signal?: AbortSignal): Promise<void> {
  const { kind, firstSlotAt, spacingMs, tenant = 'tenant', tenants = 100, target } = load
  for (let from = 0; from < load.count; from += BATCH) {
    signal?.throwIfAborted()
    const to = Math.min(from + BATCH, load.count)
    const scope = load.requiredScope ?? `${kind}:call:nothing`
    const texts = [load.cadence ?? CADENCE, load.policy ?? POLICY, scope, tenant, JSON.stringify(target ?? { kind })]
    await pool.query(INSERT, [from, to, kind, firstSlotAt, spacingMs, tenants, ...texts, target !== undefined])
  }
}

const INSERT = `
  with schedule as (
    insert into carillon.schedules (
      id, tenant_id, project_id, owner_subject, target_kind, state, revision, grant_id, next_slot_at, due_at,
      auto_pause_threshold, created_by_subject, created_at
    )
    select id, $10 || '-' || (n % $6), 'default', 'user:bench', $3, 'active', 1, id, slot, slot, 10, 'user:bench', now()
    from generate_series($1::int, $2::int - 1) as n,
      lateral (
        select uuidv7() as id,
          date_trunc('milliseconds', to_timestamp($4::float8 / 1000) + n * $5 * interval '1 ms') as slot
      ) as s
    returning *
  ), own_grant as (
    insert into carillon.execution_grants (
      id, tenant_id, project_id, subject, scopes, created_by_subject, created_at, schedule_id
    )
    select id, tenant_id, project_id, owner_subject, array[$9::text], 'user:bench', now(), id
    from schedule
  )
  insert into carillon.schedule_revisions (
    schedule_id, revision, tenant_id, project_id, name, cadence_kind, cadence_interval, target_kind, target, policy,
    grant_id, required_scope, changed_by_subject, changed_at
  )
  select id, 1, tenant_id, project_id, 'schedule ' || n, 'interval', replace($7, '#', n::text)::json, target_kind,
    case when $12 then ($11::jsonb || jsonb_build_object('payload', jsonb_build_object('number', n)))::json else $11::json end,
    $8::json, id, $9, 'user:bench', now()
  from (select schedule.*, $1 + row_number() over () - 1 as n from schedule) as numbered`
