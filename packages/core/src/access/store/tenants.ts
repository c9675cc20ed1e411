import { columns, instant, integer, text, type RowFrom } from '../../db/columns.ts'
import type { Tx } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'
import { literal, sql } from '../../db/sql.ts'
import type { FirstStatements } from '../../db/transact.ts'
import type { Scope } from '../../kernel/scope.ts'

/* `p.now` is null in production: Postgres' clock decides. Tests pass an instant. */

/** The limits of a tenant that apply to its schedules; null: the installation's limit applies. */
export interface TenantRules {
  readonly minimumSeconds: number | null
  readonly allowedHosts: readonly string[] | null
  /** The time of the transaction, read in the same round trip. Epoch milliseconds. */
  readonly now: number
}

/** The limits of a tenant; null: the installation's limit applies. Instants are epoch milliseconds. */
export interface TenantLimits {
  readonly tenantId: string
  readonly maxSchedulesPerProject: number | null
  readonly maxSchedulesPerUser: number | null
  /** The shortest time between two slots of a schedule. */
  readonly minimumSeconds: number | null
  /** How many requests each credential may send per minute. */
  readonly requestsPerMinute: number | null
  /** The hosts that HTTP targets may call; an empty list allows none. */
  readonly allowedHosts: readonly string[] | null
  /** Null if the tenant has no limits of its own. */
  readonly updatedBy: string | null
  readonly updatedAt: number | null
}

type OwnLimits = Omit<TenantLimits, 'updatedBy' | 'updatedAt'>

const LIMIT_COLUMNS = columns('tenants', {
  tenantId: text,
  maxSchedulesPerProject: integer.orNull,
  maxSchedulesPerUser: integer.orNull,
  minimumSeconds: integer.orNull,
  requestsPerMinute: integer.orNull,
  allowedHosts: text.list.orNull,
  updatedBy: text.as(sql`tenants.updated_by_subject`),
  updatedAt: instant,
})

const RULE_COLUMNS = columns('tenants', { minimumSeconds: integer.orNull, allowedHosts: text.list.orNull })

/**
 * The statements that read the limits of the transaction's tenant. They have no parameters, so they are sent in one message with `begin`.
 * They are two, because most tenants have no row and Postgres needs twice the time to plan a join.
 * @param now an instant that a test sets; null: Postgres' clock
 */
export function tenantRulesStatements(now: Date | null): FirstStatements {
  const time = sql`select ${timeColumns(now)}`
  const rules = sql`
    select ${RULE_COLUMNS}
    from tenants
    where tenants.tenant_id = current_setting('carillon.tenant_id')`
  return [time.compile(), rules.compile()]
}

/** @param rows the rows of `tenantRulesStatements` */
export function toTenantRules(rows: readonly unknown[]): TenantRules {
  const [time, rules] = rows as readonly [RowFrom<ReturnType<typeof timeColumns>>?, RowFrom<typeof RULE_COLUMNS>?]
  if (time === undefined) throw new Error('expected one row with the time, got none')
  return { minimumSeconds: rules?.minimumSeconds ?? null, allowedHosts: rules?.allowedHosts ?? null, now: time.now }
}

function timeColumns(now: Date | null) {
  const time = now === null ? sql`now()` : sql`${literal(now.toISOString())}::timestamptz`
  return columns('transaction', { now: instant.as(time) })
}

/** The same limits, read in the middle of a transaction. */
export async function readTenantRules(tx: Tx, p: { tenantId: string; now: Date | null }): Promise<TenantRules> {
  const [rules] = await sql`
    select ${RULE_COLUMNS.with('one', { now: instant.as(nowOf(p.now)) })}
    from (select) as one
    left join tenants on tenants.tenant_id = ${p.tenantId}`.execute(tx)
  if (rules === undefined) throw new Error('expected one row of rules, got none')
  return rules
}

/** Undefined if the tenant has no limits of its own. */
export async function findTenantLimits(tx: Tx, p: { tenantId: string }): Promise<TenantLimits | undefined> {
  const [limits] = await sql`
    select ${LIMIT_COLUMNS}
    from tenants
    where tenants.tenant_id = ${p.tenantId}`.execute(tx)
  return limits
}

/** Replaces all limits of a tenant. */
export async function saveTenantLimits(
  tx: Tx,
  p: OwnLimits & { actor: string; now: Date | null },
): Promise<TenantLimits> {
  const [limits] = await sql`
    insert into tenants (
      tenant_id, max_schedules_per_project, max_schedules_per_user, minimum_seconds, requests_per_minute, allowed_hosts,
      updated_by_subject, updated_at
    )
    values (
      ${p.tenantId}, ${p.maxSchedulesPerProject}, ${p.maxSchedulesPerUser}, ${p.minimumSeconds}, ${p.requestsPerMinute},
      ${p.allowedHosts}::text[], ${p.actor}, ${nowOf(p.now)}
    )
    on conflict (tenant_id) do update
    set max_schedules_per_project = excluded.max_schedules_per_project,
      max_schedules_per_user = excluded.max_schedules_per_user,
      minimum_seconds = excluded.minimum_seconds,
      requests_per_minute = excluded.requests_per_minute,
      allowed_hosts = excluded.allowed_hosts,
      updated_by_subject = excluded.updated_by_subject,
      updated_at = excluded.updated_at
    returning ${LIMIT_COLUMNS}`.execute(tx)
  if (limits === undefined) throw new Error('expected the saved limits, got no row')
  return limits
}

/** Fails the transaction unless the quotas of project and owner have room for a locked schedule that has become active again. */
export async function requireQuota(tx: Tx, p: Scope & { ownerSubject: string }): Promise<void> {
  await sql`select check_quotas(${p.tenantId}, ${p.projectId}, ${p.ownerSubject}, 1)`.execute(tx)
}
