import { sql } from 'kysely'

import type { Db, Tx } from '../../db/database.ts'
import { ADVISORY_LOCK_SPACE } from '../../db/locks.ts'
import { nowOf } from '../../db/now.ts'
import type { Scope } from '../../kernel/scope.ts'
import type { SecretName } from '../../ports/secret-store.ts'
import type { SealedSecret } from '../secret-cipher.ts'

/* `p.now` is null in production: Postgres' clock decides. Tests pass an instant. */

/** A secret as it may be shown, without its value or anything derived from it. Instants are epoch milliseconds. */
export interface SecretRecord {
  readonly name: string
  /** 1 for the first value of the secret, one more with each new value. */
  readonly version: number
  readonly createdBy: string
  readonly createdAt: number
  readonly updatedBy: string
  readonly updatedAt: number
}

/** A stored secret. */
export interface StoredSecret extends SealedSecret {
  readonly version: number
}

interface Row {
  name: string
  version: number
  created_by_subject: string
  created_at: Date
  updated_by_subject: string
  updated_at: Date
}

/** The first key of the advisory locks on secrets. It keeps them apart from the locks on idempotency keys and on quotas. */
const SECRET_LOCK_SPACE = ADVISORY_LOCK_SPACE + 3

const RECORD_COLUMNS = sql`
  secrets.name, secrets.version, secrets.created_by_subject, secrets.created_at, secrets.updated_by_subject,
  secrets.updated_at`

/**
 * Locks a name until the transaction ends, even if no such secret exists. A value is encrypted for its version, so no other
 * transaction may create the same version meanwhile. Two names can share a lock by chance; then one waits for the other.
 */
export async function lockSecretName(tx: Tx, p: SecretName): Promise<void> {
  await sql`
    select pg_advisory_xact_lock(
      ${SECRET_LOCK_SPACE}::int, hashtext(concat_ws('/', ${p.tenantId}::text, ${p.projectId}::text, ${p.name}::text))
    )`.execute(tx)
}

/** No row-level security applies to a worker: only the tenant and project of this query keep other projects' secrets out (I9). */
export async function findKeptSecret(db: Db | Tx, p: SecretName): Promise<StoredSecret | undefined> {
  const { rows } = await sql<{ version: number; key_id: string; nonce: Buffer; ciphertext: Buffer }>`
    select secrets.version, secrets.key_id, secrets.nonce, secrets.ciphertext
    from carillon.secrets
    where secrets.tenant_id = ${p.tenantId} and secrets.project_id = ${p.projectId} and secrets.name = ${p.name}`.execute(
    db,
  )
  const [row] = rows
  return row && { version: row.version, keyId: row.key_id, nonce: row.nonce, ciphertext: row.ciphertext }
}

/** Stores a version and replaces the previous one. Requires `lockSecretName`. */
export async function saveSecret(
  tx: Tx,
  p: SecretName & StoredSecret & { actor: string; now: Date | null },
): Promise<SecretRecord> {
  const { rows } = await sql<Row>`
    insert into carillon.secrets (
      tenant_id, project_id, name, version, key_id, nonce, ciphertext, created_by_subject, created_at, updated_by_subject,
      updated_at
    )
    values (
      ${p.tenantId}, ${p.projectId}, ${p.name}, ${p.version}, ${p.keyId}, ${p.nonce}, ${p.ciphertext}, ${p.actor},
      ${nowOf(p.now)}, ${p.actor}, ${nowOf(p.now)}
    )
    on conflict (tenant_id, project_id, name) do update
    set version = excluded.version,
      key_id = excluded.key_id,
      nonce = excluded.nonce,
      ciphertext = excluded.ciphertext,
      updated_by_subject = excluded.updated_by_subject,
      updated_at = excluded.updated_at
    returning ${RECORD_COLUMNS}`.execute(tx)
  const [row] = rows
  if (row === undefined) throw new Error('expected the saved secret, got no row')
  return toSecretRecord(row)
}

/** Replaces the ciphertext of the same version. Requires `lockSecretName`. */
export async function resealSecret(tx: Tx, p: SecretName & StoredSecret): Promise<void> {
  await sql`
    update carillon.secrets
    set key_id = ${p.keyId}, nonce = ${p.nonce}, ciphertext = ${p.ciphertext}
    where secrets.tenant_id = ${p.tenantId} and secrets.project_id = ${p.projectId} and secrets.name = ${p.name}
      and secrets.version = ${p.version}`.execute(tx)
}

/** A page of a project's secrets, sorted by name. `after` is the last name of the previous page. */
export async function listSecrets(tx: Tx, p: Scope & { after: string | null; limit: number }): Promise<SecretRecord[]> {
  const { rows } = await sql<Row>`
    select ${RECORD_COLUMNS}
    from carillon.secrets
    where secrets.tenant_id = ${p.tenantId} and secrets.project_id = ${p.projectId}
      and (${p.after}::text is null or secrets.name > ${p.after}::text)
    order by secrets.name
    limit ${p.limit}`.execute(tx)
  return rows.map(toSecretRecord)
}

/** Those of the given names that the project has a secret for. */
export async function listKnownSecrets(tx: Tx, p: Scope & { names: readonly string[] }): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ name: string }>`
    select secrets.name
    from carillon.secrets
    where secrets.tenant_id = ${p.tenantId} and secrets.project_id = ${p.projectId}
      and secrets.name = any(${p.names}::text[])`.execute(tx)
  return new Set(rows.map(({ name }) => name))
}

/** A page of the secrets of all tenants that a key other than `keyId` encrypted. `after` ends the previous page; null: the first page. */
export async function listSecretsOfOtherKeys(
  db: Db,
  p: { keyId: string; after: SecretName | null; limit: number },
): Promise<SecretName[]> {
  const { rows } = await sql<{ tenant_id: string; project_id: string; name: string }>`
    select secrets.tenant_id, secrets.project_id, secrets.name
    from carillon.secrets
    where secrets.key_id <> ${p.keyId}
      and (secrets.tenant_id, secrets.project_id, secrets.name) > (
        ${p.after?.tenantId ?? ''}, ${p.after?.projectId ?? ''}, ${p.after?.name ?? ''}
      )
    order by secrets.tenant_id, secrets.project_id, secrets.name
    limit ${p.limit}`.execute(db)
  return rows.map((row) => ({ tenantId: row.tenant_id, projectId: row.project_id, name: row.name }))
}

/** Deletes a secret. Undefined also for a secret of another project (I9). */
export async function deleteSecret(tx: Tx, p: SecretName): Promise<SecretRecord | undefined> {
  const { rows } = await sql<Row>`
    delete from carillon.secrets
    where secrets.tenant_id = ${p.tenantId} and secrets.project_id = ${p.projectId} and secrets.name = ${p.name}
    returning ${RECORD_COLUMNS}`.execute(tx)
  const [row] = rows
  return row && toSecretRecord(row)
}

function toSecretRecord(row: Row): SecretRecord {
  return {
    name: row.name,
    version: row.version,
    createdBy: row.created_by_subject,
    createdAt: row.created_at.getTime(),
    updatedBy: row.updated_by_subject,
    updatedAt: row.updated_at.getTime(),
  }
}

/** Counts the secrets of all tenants (`kept`), and those of them that none of the given keys encrypted (`unreadable`). */
export async function countSecrets(
  db: Db,
  p: { keyIds: readonly string[] },
): Promise<{ readonly kept: number; readonly unreadable: number }> {
  const { rows } = await sql<{ kept: number; unreadable: number }>`
    select count(*)::int as kept,
      count(*) filter (where secrets.key_id <> all(${p.keyIds}::text[]))::int as unreadable
    from carillon.secrets`.execute(db)
  return rows[0] ?? { kept: 0, unreadable: 0 }
}
