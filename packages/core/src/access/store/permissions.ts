import { columns, instant, json, type RowFrom } from '../../db/columns.ts'
import type { Queryable } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'
import { plainArray } from '../../db/parameters.ts'
import { sql } from '../../db/sql.ts'
import type { Scope } from '../../kernel/scope.ts'
import type { HeldRun } from '../../ledger/held-run.ts'
import type { GrantFacts } from '../../policy/grant.ts'

/** The parts of a run that its permission check needs. */
export type RunOfGrant = Pick<HeldRun, 'tenantId' | 'projectId' | 'scheduleId' | 'grant' | 'ownerSubject'>

/** The restrictions on a batch of runs at this moment. A run without an entry here may act as its grant says. */
export interface Permissions {
  /** The grants that have an expiry, were revoked, or changed since begin or take read them, as they are now; by grant id. */
  readonly limited: ReadonlyMap<string, GrantFacts>
  /** Members that were removed from a project, by `nameOfMember`. */
  readonly removed: ReadonlySet<string>
  /** The allowed hosts of tenants that have a list of their own, by tenant id. */
  readonly allowedHosts: ReadonlyMap<string, readonly string[]>
  /** By Postgres' clock, which also decides when a grant expires (I10). Epoch milliseconds. */
  readonly now: number
}

/** A grant as JSON, in which instants are text. */
interface LimitedGrant {
  readonly id: string
  readonly scopes: readonly string[]
  readonly expires_at: string | null
  readonly revoked_at: string | null
}

interface RemovedMember {
  readonly tenant_id: string
  readonly project_id: string
  readonly subject: string
}

interface HostsOfTenant {
  readonly tenant_id: string
  readonly allowed_hosts: readonly string[]
}

interface Member extends Scope {
  readonly subject: string
}

/**
 * Reads the restrictions on a batch of runs. One statement with its own snapshot, so it sees every revocation that was committed before
 * it began. It returns restrictions only, because most runs have none.
 * @param p.now an instant that a test sets; null: Postgres' clock
 */
export async function readPermissions(
  db: Queryable,
  p: { runs: readonly RunOfGrant[]; now: Date | null },
): Promise<Permissions> {
  const [row] = await sql`select ${restrictionsOn(p)}`.execute(db)
  if (row === undefined) throw new Error('expected one row of permissions, got none')
  return toPermissions(row)
}

function restrictionsOn(p: { runs: readonly RunOfGrant[]; now: Date | null }) {
  const members = membersOf(p.runs)
  const tenantIds = [...new Set(p.runs.map(({ tenantId }) => tenantId))]
  return columns('restrictions', {
    limited: json<readonly LimitedGrant[]>().orNull.as(sql`(
      select json_agg(json_build_object(
        'id', grants.id, 'scopes', grants.scopes, 'expires_at', grants.expires_at, 'revoked_at', grants.revoked_at
      ))
      from unnest(
        ${plainArray(p.runs.map(({ grant }) => grant.id))}::uuid[],
        ${plainArray(p.runs.map(({ grant }) => grant.version))}::xid[]
      ) as read(id, version)
      join execution_grants as grants on grants.id = read.id
      where grants.expires_at is not null or grants.revoked_at is not null or grants.xmin <> read.version
    )`),
    removed: json<readonly RemovedMember[]>().orNull.as(sql`(
      select json_agg(json_build_object(
        'tenant_id', members.tenant_id, 'project_id', members.project_id, 'subject', members.subject
      ))
      from unnest(
        ${members.map(({ tenantId }) => tenantId)}::text[],
        ${members.map(({ projectId }) => projectId)}::text[],
        ${members.map(({ subject }) => subject)}::text[]
      ) as asked(tenant_id, project_id, subject)
      join members on members.tenant_id = asked.tenant_id and members.project_id = asked.project_id
        and members.subject = asked.subject
      where members.removed_at is not null
    )`),
    hosts: json<readonly HostsOfTenant[]>().orNull.as(sql`(
      select json_agg(json_build_object('tenant_id', tenant_id, 'allowed_hosts', allowed_hosts))
      from tenants
      where tenant_id = any(${tenantIds}::text[]) and allowed_hosts is not null
    )`),
    now: instant.as(nowOf(p.now)),
  })
}

/** The owners of the runs and the subjects of their grants, each once: many runs share few members. */
function membersOf(runs: readonly RunOfGrant[]): readonly Member[] {
  const members = new Map<string, Member>()
  let last: Member = { tenantId: '', projectId: '', subject: '' }
  for (const { tenantId, projectId, ownerSubject, grant } of runs) {
    for (const subject of [ownerSubject, grant.subject]) {
      // Adjacent runs mostly have the same member, and comparing costs less than building its name.
      if (last.subject === subject && last.projectId === projectId && last.tenantId === tenantId) continue
      last = { tenantId, projectId, subject }
      members.set(nameOfMember(last), last)
    }
  }
  return [...members.values()]
}

export function nameOfMember({ tenantId, projectId, subject }: Member): string {
  // Postgres stores no text with this character, so no part contains it.
  return `${tenantId}\0${projectId}\0${subject}`
}

function toPermissions({ limited, removed, hosts, now }: RowFrom<ReturnType<typeof restrictionsOn>>): Permissions {
  return {
    limited: new Map(
      limited?.map(({ id, scopes, expires_at, revoked_at }) => [
        id,
        { scopes, expiresAt: toInstant(expires_at), revokedAt: toInstant(revoked_at) },
      ]),
    ),
    removed: new Set(
      removed?.map(({ tenant_id, project_id, subject }) =>
        nameOfMember({ tenantId: tenant_id, projectId: project_id, subject }),
      ),
    ),
    allowedHosts: new Map(hosts?.map(({ tenant_id, allowed_hosts }) => [tenant_id, allowed_hosts])),
    now,
  }
}

function toInstant(text: string | null): number | null {
  return text === null ? null : Date.parse(text)
}
