import { bytes, columns, instant, integer, text } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { lockSpace } from '../../db/locks.ts'
import { nowOf } from '../../db/now.ts'
import { sql } from '../../db/sql.ts'
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

const RECORD_COLUMNS = columns('secrets', {
  name: text,
  version: integer,
  createdBy: text.as(sql`secrets.created_by_subject`),
  createdAt: instant,
  updatedBy: text.as(sql`secrets.updated_by_subject`),
  updatedAt: instant,
})

/**
 * Locks a name until the transaction ends, even if no such secret exists. A value is encrypted for its version, so no other
 * transaction may create the same version meanwhile. Two names can share a lock by chance; then one waits for the other.
 */
export async function lockSecretName(tx: Tx, p: SecretName): Promise<void> {
  await sql`
    select pg_advisory_xact_lock(
      ${lockSpace('secrets')}, hashtext(concat_ws('/', ${p.tenantId}::text, ${p.projectId}::text, ${p.name}::text))
    )`.execute(tx)
}

const STORED_COLUMNS = columns('secrets', { version: integer, keyId: text, nonce: bytes, ciphertext: bytes })

/** No row-level security applies to a worker: only the tenant and project of this query keep other projects' secrets out (I9). */
export async function findKeptSecret(db: Db | Tx, p: SecretName): Promise<StoredSecret | undefined> {
  const [secret] = await sql`
    select ${STORED_COLUMNS}
    from secrets
    where secrets.tenant_id = ${p.tenantId} and secrets.project_id = ${p.projectId} and secrets.name = ${p.name}`.execute(
    db,
  )
  return secret
}

/** Stores a version and replaces the previous one. Requires `lockSecretName`. */
export async function saveSecret(
  tx: Tx,
  p: SecretName & StoredSecret & { actor: string; now: Date | null },
): Promise<SecretRecord> {
  const [secret] = await sql`
    insert into secrets (
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
  if (secret === undefined) throw new Error('expected the saved secret, got no row')
  return secret
}

/** Replaces the ciphertext of the same version. Requires `lockSecretName`. */
export async function resealSecret(tx: Tx, p: SecretName & StoredSecret): Promise<void> {
  await sql`
    update secrets
    set key_id = ${p.keyId}, nonce = ${p.nonce}, ciphertext = ${p.ciphertext}
    where secrets.tenant_id = ${p.tenantId} and secrets.project_id = ${p.projectId} and secrets.name = ${p.name}
      and secrets.version = ${p.version}`.execute(tx)
}

/** A page of a project's secrets, sorted by name. `after` is the last name of the previous page. */
export async function listSecrets(tx: Tx, p: Scope & { after: string | null; limit: number }): Promise<SecretRecord[]> {
  return sql`
    select ${RECORD_COLUMNS}
    from secrets
    where secrets.tenant_id = ${p.tenantId} and secrets.project_id = ${p.projectId}
      and (${p.after}::text is null or secrets.name > ${p.after}::text)
    order by secrets.name
    limit ${p.limit}`.execute(tx)
}

/** Those of the given names that the project has a secret for. */
export async function listKnownSecrets(tx: Tx, p: Scope & { names: readonly string[] }): Promise<ReadonlySet<string>> {
  const rows = await sql`
    select ${columns('secrets', { name: text })}
    from secrets
    where secrets.tenant_id = ${p.tenantId} and secrets.project_id = ${p.projectId}
      and secrets.name = any(${p.names}::text[])`.execute(tx)
  return new Set(rows.map(({ name }) => name))
}

const NAME_COLUMNS = columns('secrets', { tenantId: text, projectId: text, name: text })

/** A page of the secrets of all tenants that a key other than `keyId` encrypted. `after` ends the previous page; null: the first page. */
export async function listSecretsOfOtherKeys(
  db: Db,
  p: { keyId: string; after: SecretName | null; limit: number },
): Promise<SecretName[]> {
  return sql`
    select ${NAME_COLUMNS}
    from secrets
    where secrets.key_id <> ${p.keyId}
      and (secrets.tenant_id, secrets.project_id, secrets.name) > (
        ${p.after?.tenantId ?? ''}, ${p.after?.projectId ?? ''}, ${p.after?.name ?? ''}
      )
    order by secrets.tenant_id, secrets.project_id, secrets.name
    limit ${p.limit}`.execute(db)
}

/** Deletes a secret. Undefined also for a secret of another project (I9). */
export async function deleteSecret(tx: Tx, p: SecretName): Promise<SecretRecord | undefined> {
  const [secret] = await sql`
    delete from secrets
    where secrets.tenant_id = ${p.tenantId} and secrets.project_id = ${p.projectId} and secrets.name = ${p.name}
    returning ${RECORD_COLUMNS}`.execute(tx)
  return secret
}

/** Counts the secrets of all tenants (`kept`), and those of them that none of the given keys encrypted (`unreadable`). */
export async function countSecrets(
  db: Db,
  p: { keyIds: readonly string[] },
): Promise<{ readonly kept: number; readonly unreadable: number }> {
  const counts = columns('secrets', {
    kept: integer.as(sql`count(*)::int`),
    unreadable: integer.as(sql`count(*) filter (where secrets.key_id <> all(${p.keyIds}::text[]))::int`),
  })
  const [row] = await sql`select ${counts} from secrets`.execute(db)
  return row ?? { kept: 0, unreadable: 0 }
}
