import { sql } from 'kysely'

import type { Tx } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'
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

interface Row {
  max_schedules_per_project: number | null
  max_schedules_per_user: number | null
  minimum_seconds: number | null
  requests_per_minute: number | null
  allowed_hosts: string[] | null
  updated_by_subject: string
  updated_at: Date
}

const LIMIT_COLUMNS = sql`
  tenants.max_schedules_per_project, tenants.max_schedules_per_user, tenants.minimum_seconds, tenants.requests_per_minute,
  tenants.allowed_hosts, tenants.updated_by_subject, tenants.updated_at`

interface TimeRow {
  now: Date
}

interface RulesRow {
  minimum_seconds: number | null
  allowed_hosts: string[] | null
}

/**
 * The SQL that reads the limits of the transaction's tenant. It has no parameters, so it is sent in one message with `begin`. It is two
 * statements, because most tenants have no row and Postgres needs twice the time to plan a join.
 * @param now an instant that a test sets; null: Postgres' clock
 */
export function tenantRulesText(now: Date | null): string {
  const instant = now === null ? 'now()' : `'${now.toISOString()}'::timestamptz`
  return `select ${instant} as now;
    select tenants.minimum_seconds, tenants.allowed_hosts
    from carillon.tenants
    where tenants.tenant_id = current_setting('carillon.tenant_id')`
}

/** @param rows the rows of both statements of `tenantRulesText` */
export function toTenantRules(rows: readonly unknown[]): TenantRules {
  const time = rows.find(isTimeRow)
  if (time === undefined) throw new Error('expected one row with the time, got none')
  return rulesAt(time, rows.find(isRulesRow))
}

function isTimeRow(row: unknown): row is TimeRow {
  return typeof row === 'object' && row !== null && 'now' in row
}

function isRulesRow(row: unknown): row is RulesRow {
  return typeof row === 'object' && row !== null && 'minimum_seconds' in row
}

function rulesAt({ now }: TimeRow, rules: RulesRow | undefined): TenantRules {
  return {
    minimumSeconds: rules?.minimum_seconds ?? null,
    allowedHosts: rules?.allowed_hosts ?? null,
    now: now.getTime(),
  }
}

/** The same limits, read in the middle of a transaction. */
export async function readTenantRules(tx: Tx, p: { tenantId: string; now: Date | null }): Promise<TenantRules> {
  const { rows } = await sql<RulesRow & TimeRow>`
    select ${nowOf(p.now)} as now, tenants.minimum_seconds, tenants.allowed_hosts
    from (select) as one
    left join carillon.tenants on tenants.tenant_id = ${p.tenantId}`.execute(tx)
  const [row] = rows
  if (row === undefined) throw new Error('expected one row of rules, got none')
  return rulesAt(row, row)
}

/** Undefined if the tenant has no limits of its own. */
export async function findTenantLimits(tx: Tx, p: { tenantId: string }): Promise<TenantLimits | undefined> {
  const { rows } = await sql<Row>`
    select ${LIMIT_COLUMNS}
    from carillon.tenants
    where tenants.tenant_id = ${p.tenantId}`.execute(tx)
  const [row] = rows
  return row && toTenantLimits(p.tenantId, row)
}

/** Replaces all limits of a tenant. */
export async function saveTenantLimits(
  tx: Tx,
  p: OwnLimits & { actor: string; now: Date | null },
): Promise<TenantLimits> {
  const { rows } = await sql<Row>`
    insert into carillon.tenants (
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
  const [row] = rows
  if (row === undefined) throw new Error('expected the saved limits, got no row')
  return toTenantLimits(p.tenantId, row)
}

/** Fails the transaction unless the quotas of project and owner have room for a locked schedule that has become active again. */
export async function requireQuota(tx: Tx, p: Scope & { ownerSubject: string }): Promise<void> {
  await sql`select carillon.check_quotas(${p.tenantId}, ${p.projectId}, ${p.ownerSubject}, 1)`.execute(tx)
}

function toTenantLimits(tenantId: string, row: Row): TenantLimits {
  return {
    tenantId,
    maxSchedulesPerProject: row.max_schedules_per_project,
    maxSchedulesPerUser: row.max_schedules_per_user,
    minimumSeconds: row.minimum_seconds,
    requestsPerMinute: row.requests_per_minute,
    allowedHosts: row.allowed_hosts,
    updatedBy: row.updated_by_subject,
    updatedAt: row.updated_at.getTime(),
  }
}
