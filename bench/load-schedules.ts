import type { createPool } from '@carillon/core'

const BATCH = 50_000

/**
 * Fills a database with active schedules in bulk, as an import would. Their slots lie one after the other; each is due once
 * in a thousand years, so nothing comes back during a measurement.
 */
export async function loadSchedules(
  pool: ReturnType<typeof createPool>,
  p: { count: number; kind: string; firstSlotAt: number; spacingMs: number; tenants?: number },
): Promise<void> {
  const cadence = JSON.stringify({
    kind: 'interval',
    every: 'P9000D',
    startAt: new Date(0).toISOString(),
    timezone: 'UTC',
  })
  const policy = JSON.stringify({
    overlap: 'forbid',
    missed: 'skip',
    startingDeadlineSeconds: 300,
    retry: { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 },
    autoPauseThreshold: 10,
    spreadSeconds: 0,
  })
  for (let from = 0; from < p.count; from += BATCH) {
    await pool.query(
      `with schedule as (
        insert into carillon.schedules (
          id, tenant_id, project_id, owner_subject, target_kind, state, revision, grant_id, next_slot_at, due_at,
          auto_pause_threshold, created_by_subject, created_at
        )
        select id, 'tenant-' || (n % $6), 'default', 'user:bench', $3, 'active', 1, id, slot, slot, 10, 'user:bench', now()
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
      select id, 1, tenant_id, project_id, 'bench', 'interval', $7::json, target_kind,
        json_build_object('kind', target_kind), $8::json, id, $9, 'user:bench', now()
      from schedule`,
      [
        from,
        Math.min(from + BATCH, p.count),
        p.kind,
        p.firstSlotAt,
        p.spacingMs,
        p.tenants ?? 100,
        cadence,
        policy,
        `${p.kind}:call:nothing`,
      ],
    )
  }
  // As after a night: the table is vacuumed and what was loaded is on disk, so that a measurement does not pay for it.
  await pool.query('vacuum (analyze) carillon.schedules')
  await pool.query('vacuum (analyze) carillon.schedule_revisions')
  await pool.query('checkpoint')
}
