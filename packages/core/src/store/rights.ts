import { sql } from 'kysely'

import type { GrantFacts } from '../policy/grant.ts'
import { plainArray } from './array-text.ts'
import type { Db, Tx } from './database.ts'
import { nowOf } from './now.ts'
import type { TakenRun } from './taken-run.ts'
import type { Place } from './walled-transaction.ts'

/** What of a run says by what right it acts. */
export type RunOfGrant = Pick<TakenRun, 'tenantId' | 'projectId' | 'scheduleId' | 'grant' | 'ownerSubject'>

/** What has become of the rights of runs, as it is at this moment: of each only what is not as nearly all are. */
export interface Rights {
  /** Grants that end, were revoked, or have been changed since they were read, by id. */
  readonly limited: ReadonlyMap<string, GrantFacts>
  /** Who was removed from a project, by `nameOfMember`. */
  readonly removed: ReadonlySet<string>
  /** Hosts of tenants that have a list of their own. */
  readonly allowedHosts: ReadonlyMap<string, readonly string[]>
  /** By the clock that ends grants (I10). */
  readonly now: number
}

interface Row {
  limited: { id: string; scopes: string[]; expires_at: string | null; revoked_at: string | null }[] | null
  removed: { tenant_id: string; project_id: string; subject: string }[] | null
  hosts: { tenant_id: string; allowed_hosts: string[] }[] | null
  now: Date
}

interface Member extends Place {
  readonly subject: string
}

/**
 * What has become of the rights of runs. One statement for a whole batch, and a snapshot of its own: what was revoked before
 * it began is seen. It answers with what is out of the ordinary, for of a herd nothing is.
 */
export async function readRights(
  db: Pick<Db, 'getExecutor'>,
  p: { runs: readonly RunOfGrant[]; now: Date | null },
): Promise<Rights> {
  const members = membersOf(p.runs)
  const tenantIds = [...new Set(p.runs.map(({ tenantId }) => tenantId))]
  const { rows } = await sql<Row>`
    select (
        select json_agg(json_build_object(
          'id', grants.id, 'scopes', grants.scopes, 'expires_at', grants.expires_at, 'revoked_at', grants.revoked_at
        ))
        from unnest(
          ${plainArray(p.runs.map(({ grant }) => grant.id))}::uuid[],
          ${plainArray(p.runs.map(({ grant }) => grant.version))}::xid[]
        ) as read(id, version)
        join carillon.execution_grants as grants on grants.id = read.id
        where grants.expires_at is not null or grants.revoked_at is not null or grants.xmin <> read.version
      ) as limited,
      (
        select json_agg(json_build_object(
          'tenant_id', members.tenant_id, 'project_id', members.project_id, 'subject', members.subject
        ))
        from unnest(
          ${members.map(({ tenantId }) => tenantId)}::text[],
          ${members.map(({ projectId }) => projectId)}::text[],
          ${members.map(({ subject }) => subject)}::text[]
        ) as asked(tenant_id, project_id, subject)
        join carillon.members on members.tenant_id = asked.tenant_id and members.project_id = asked.project_id
          and members.subject = asked.subject
        where members.removed_at is not null
      ) as removed,
      (
        select json_agg(json_build_object('tenant_id', tenant_id, 'allowed_hosts', allowed_hosts))
        from carillon.tenants
        where tenant_id = any(${tenantIds}::text[]) and allowed_hosts is not null
      ) as hosts,
      ${nowOf(p.now)} as now`.execute(db)
  const [row] = rows
  if (row === undefined) throw new Error('Postgres told no rights')
  return toRights(row)
}

/** A herd is of few people: each is asked for once. */
function membersOf(runs: readonly RunOfGrant[]): readonly Member[] {
  const members = new Map<string, Member>()
  let last: Member = { tenantId: '', projectId: '', subject: '' }
  for (const { tenantId, projectId, ownerSubject, grant } of runs) {
    for (const subject of [ownerSubject, grant.subject]) {
      // Neighbours are mostly of the same one, and a name costs more than looking at it twice.
      if (last.subject === subject && last.projectId === projectId && last.tenantId === tenantId) continue
      last = { tenantId, projectId, subject }
      members.set(nameOfMember(last), last)
    }
  }
  return [...members.values()]
}

export function nameOfMember({ tenantId, projectId, subject }: Member): string {
  // None of the three holds this character: Postgres keeps no text with it.
  return `${tenantId}\0${projectId}\0${subject}`
}

function toRights({ limited, removed, hosts, now }: Row): Rights {
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
    now: now.getTime(),
  }
}

function toInstant(text: string | null): number | null {
  return text === null ? null : Date.parse(text)
}

/** Of these subjects one that was removed from a project; undefined if all may act. */
export async function findRemoved(tx: Tx, p: Place & { subjects: readonly string[] }): Promise<string | undefined> {
  const { rows } = await sql<{ subject: string }>`
    select members.subject
    from carillon.members
    where members.tenant_id = ${p.tenantId} and members.project_id = ${p.projectId}
      and members.subject = any(${p.subjects}::text[]) and members.removed_at is not null
    limit 1`.execute(tx)
  return rows[0]?.subject
}
