import { sql } from 'kysely'

import type { SealedSecret } from '../secret-cipher.ts'
import type { SecretName } from '../secret-store.ts'
import { ADVISORY_LOCK_SPACE } from './advisory-lock.ts'
import type { Db, Tx } from './database.ts'
import { nowOf } from './now.ts'
import type { Place } from './walled-transaction.ts'

/** A secret as it may be shown: never its value, nor anything made of it. Instants are epoch milliseconds. */
export interface SecretRecord {
  readonly name: string
  /** Grows by one with each value. */
  readonly version: number
  readonly createdBy: string
  readonly createdAt: number
  readonly updatedBy: string
  readonly updatedAt: number
}

/** A secret as it is kept. */
export interface KeptSecret extends SealedSecret {
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

/** Beside the locks on idempotency keys and on places of schedules. */
const SECRET_LOCK_SPACE = ADVISORY_LOCK_SPACE + 3

const RECORD_COLUMNS = sql`
  secrets.name, secrets.version, secrets.created_by_subject, secrets.created_at, secrets.updated_by_subject,
  secrets.updated_at`

/**
 * Takes a name for the rest of the transaction, whether or not there is a secret of it: a value is encrypted for the version
 * that it will be, so nobody else may make that version meanwhile. Two names may share a lock by chance; then one waits.
 */
export async function lockSecretName(tx: Tx, p: SecretName): Promise<void> {
  await sql`
    select pg_advisory_xact_lock(
      ${SECRET_LOCK_SPACE}::int, hashtext(concat_ws('/', ${p.tenantId}::text, ${p.projectId}::text, ${p.name}::text))
    )`.execute(tx)
}

/** A secret as it is kept. By a worker, whom no wall holds: tenant and project are all that keeps others' out (I9). */
export async function findKeptSecret(db: Db | Tx, p: SecretName): Promise<KeptSecret | undefined> {
  const { rows } = await sql<{ version: number; key_id: string; nonce: Buffer; ciphertext: Buffer }>`
    select secrets.version, secrets.key_id, secrets.nonce, secrets.ciphertext
    from carillon.secrets
    where secrets.tenant_id = ${p.tenantId} and secrets.project_id = ${p.projectId} and secrets.name = ${p.name}`.execute(
    db,
  )
  const [row] = rows
  return row && { version: row.version, keyId: row.key_id, nonce: row.nonce, ciphertext: row.ciphertext }
}

/** Keeps a version in the place of the one before. Call with the name locked. */
export async function saveSecret(
  tx: Tx,
  p: SecretName & KeptSecret & { actor: string; now: Date | null },
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
  if (row === undefined) throw new Error('Postgres returned no row for a secret that it took')
  return toSecretRecord(row)
}

/** Keeps the same version of a value, encrypted anew. Call with the name locked. */
export async function resealSecret(tx: Tx, p: SecretName & KeptSecret): Promise<void> {
  await sql`
    update carillon.secrets
    set key_id = ${p.keyId}, nonce = ${p.nonce}, ciphertext = ${p.ciphertext}
    where secrets.tenant_id = ${p.tenantId} and secrets.project_id = ${p.projectId} and secrets.name = ${p.name}
      and secrets.version = ${p.version}`.execute(tx)
}

/** A page of a project's secrets by name. `after` is the last name of the page before. */
export async function listSecrets(tx: Tx, p: Place & { after: string | null; limit: number }): Promise<SecretRecord[]> {
  const { rows } = await sql<Row>`
    select ${RECORD_COLUMNS}
    from carillon.secrets
    where secrets.tenant_id = ${p.tenantId} and secrets.project_id = ${p.projectId}
      and (${p.after}::text is null or secrets.name > ${p.after}::text)
    order by secrets.name
    limit ${p.limit}`.execute(tx)
  return rows.map(toSecretRecord)
}

/** Of these names those that a project has a secret of. */
export async function listKnownSecrets(tx: Tx, p: Place & { names: readonly string[] }): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ name: string }>`
    select secrets.name
    from carillon.secrets
    where secrets.tenant_id = ${p.tenantId} and secrets.project_id = ${p.projectId}
      and secrets.name = any(${p.names}::text[])`.execute(tx)
  return new Set(rows.map(({ name }) => name))
}

/** A page of the secrets of all tenants that were not encrypted with this key. `after` is the last of the page before. */
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

/** Removes a secret for good. Undefined also if it is another project's (I9). */
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

/** How many secrets of all tenants there are, and how many were encrypted with none of these keys. */
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
