import { ROLES, type Role } from '@carillon/api'

import { columns, instant, text, uuid, word } from '../../db/columns.ts'
import type { Tx } from '../../db/database.ts'
import { nowOf } from '../../db/now.ts'
import { sql } from '../../db/sql.ts'
import type { Scope } from '../../kernel/scope.ts'

/* `p.now` is null in production: Postgres' clock decides. Tests pass an instant. */

/** A key as it may be shown. Its secret is stored only as a hash. */
export interface ApiKey {
  readonly id: string
  readonly tenantId: string
  readonly projectId: string
  /** The subject that it acts for: `user:alice`. */
  readonly subject: string
  readonly role: Role
  /** The key's first characters. */
  readonly prefix: string
  readonly createdBy: string
  readonly createdAt: number
  readonly revokedBy: string | null
  readonly revokedAt: number | null
}

const KEY_COLUMNS = columns('keys', {
  id: uuid,
  tenantId: text,
  projectId: text,
  subject: text,
  role: word('role', ROLES),
  prefix: text,
  createdBy: text.as(sql`keys.created_by_subject`),
  createdAt: instant,
  revokedBy: text.orNull.as(sql`keys.revoked_by_subject`),
  revokedAt: instant.orNull,
})

export async function insertApiKey(
  tx: Tx,
  p: Scope & {
    id: string
    subject: string
    role: Role
    prefix: string
    hash: Buffer
    actor: string
    now: Date | null
  },
): Promise<ApiKey> {
  const [key] = await sql`
    insert into api_keys as keys (
      id, tenant_id, project_id, subject, role, prefix, hash, created_by_subject, created_at
    )
    values (
      ${p.id}, ${p.tenantId}, ${p.projectId}, ${p.subject}, ${p.role}::role, ${p.prefix}, ${p.hash}, ${p.actor},
      ${nowOf(p.now)}
    )
    returning ${KEY_COLUMNS}`.execute(tx)
  if (key === undefined) throw new Error('expected the inserted key, got no row')
  return key
}

/** The key with this hash, unless it was revoked. Runs for every request, so it is one lookup in the unique index of hashes. */
export async function findApiKey(tx: Tx, p: { hash: Buffer }): Promise<ApiKey | undefined> {
  const [key] = await sql`
    select ${KEY_COLUMNS}
    from api_keys as keys
    where keys.hash = ${p.hash} and keys.revoked_at is null`.execute(tx)
  return key
}

/** A page of a project's keys, revoked ones too, newest first. `before` is the last id of the previous page. */
export async function listApiKeys(tx: Tx, p: Scope & { before: string | null; limit: number }): Promise<ApiKey[]> {
  return sql`
    select ${KEY_COLUMNS}
    from api_keys as keys
    where keys.tenant_id = ${p.tenantId} and keys.project_id = ${p.projectId}
      and (${p.before}::uuid is null or keys.id < ${p.before}::uuid)
    order by keys.id desc
    limit ${p.limit}`.execute(tx)
}

/** Revokes a key. A revoked key keeps its first revocation. Undefined also for a key of another project (I9). */
export async function revokeApiKey(
  tx: Tx,
  p: Scope & { id: string; actor: string; now: Date | null },
): Promise<ApiKey | undefined> {
  const [key] = await sql`
    update api_keys as keys
    set revoked_at = coalesce(keys.revoked_at, ${nowOf(p.now)}),
      revoked_by_subject = coalesce(keys.revoked_by_subject, ${p.actor})
    where keys.id = ${p.id} and keys.tenant_id = ${p.tenantId} and keys.project_id = ${p.projectId}
    returning ${KEY_COLUMNS}`.execute(tx)
  return key
}
