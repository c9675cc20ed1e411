import { createHash } from 'node:crypto'

import { DAY_MS } from '@carillon/api'
import { sql } from 'kysely'

import type { Db, Tx } from '../../db/database.ts'
import { ADVISORY_LOCK_SPACE } from '../../db/locks.ts'
import { nowOf } from '../../db/now.ts'
import type { Caller } from '../../kernel/scope.ts'

/** An idempotency key and its caller. The same text from another project (I9), or from another caller in the project, is another key. */
type KeyName = Caller & { readonly key: string }

/** The stored answer to a create. */
export interface StoredAnswer {
  /** SHA-256 of the request. */
  readonly requestHash: Buffer
  /** The created schedule, or the first of several. */
  readonly scheduleId: string
  /** The parsed JSON of the answer. */
  readonly answer: unknown
}

/* `p.now` is null in production: Postgres' clock decides. Tests pass an instant. */

/** The first key of the advisory locks on idempotency keys. It keeps them apart from the locks with fixed numbers. */
const KEY_LOCK_SPACE = ADVISORY_LOCK_SPACE + 1
/** How long a repeated request gets the stored answer. A request with the same key that comes later creates again. */
export const ANSWERS_KEPT_MS = DAY_MS

/**
 * Locks a key for the rest of the transaction; false if another transaction holds it. Two keys share a lock with a chance of one in
 * four billion: if their requests come at the same time, one of them is refused and can be sent again.
 */
export async function tryLockKey(tx: Tx, p: KeyName): Promise<boolean> {
  const { rows } = await sql<{ is_locked: boolean }>`
    select pg_try_advisory_xact_lock(${KEY_LOCK_SPACE}::int, ${lockOf(p)}::int) as is_locked`.execute(tx)
  return rows[0]?.is_locked === true
}

/** An answer of the last day. An older one does not count, even if upkeep has not deleted it yet. */
export async function findAnswer(tx: Tx, p: KeyName & { now: Date | null }): Promise<StoredAnswer | undefined> {
  const { rows } = await sql<{ request_hash: Buffer; schedule_id: string; answer: unknown }>`
    select answers.request_hash, answers.schedule_id, answers.answer
    from carillon.idempotent_answers as answers
    where answers.tenant_id = ${p.tenantId} and answers.project_id = ${p.projectId}
      and answers.subject = ${p.subject} and answers.key = ${p.key}
      and answers.answered_at > ${nowOf(p.now)} - ${ANSWERS_KEPT_MS} * interval '1 millisecond'`.execute(tx)
  const [row] = rows
  return row && { requestHash: row.request_hash, scheduleId: row.schedule_id, answer: row.answer }
}

/** Stores an answer, and replaces one that is too old. Call with the key locked. */
export async function saveAnswer(tx: Tx, p: KeyName & StoredAnswer & { now: Date | null }): Promise<void> {
  await sql`
    insert into carillon.idempotent_answers (
      tenant_id, project_id, subject, key, request_hash, schedule_id, answer, answered_at
    )
    values (
      ${p.tenantId}, ${p.projectId}, ${p.subject}, ${p.key}, ${p.requestHash}, ${p.scheduleId},
      ${JSON.stringify(p.answer)}::json, ${nowOf(p.now)}
    )
    on conflict (tenant_id, project_id, subject, key) do update
    set request_hash = excluded.request_hash,
      schedule_id = excluded.schedule_id,
      answer = excluded.answer,
      answered_at = excluded.answered_at`.execute(tx)
}

/** Deletes answers from before an instant and returns how many. A later request with such a key creates again. */
export async function deleteAnswers(db: Db | Tx, p: { before: Date; limit: number }): Promise<number> {
  const { rows } = await sql`
    delete from carillon.idempotent_answers as answers
    where answers.ctid = any(array(
      select old.ctid
      from carillon.idempotent_answers as old
      where old.answered_at < ${p.before}
      order by old.answered_at
      limit ${p.limit}
      for update skip locked
    ))
    returning answers.key`.execute(db)
  return rows.length
}

function lockOf({ tenantId, projectId, subject, key }: KeyName): number {
  return createHash('sha256')
    .update(JSON.stringify([tenantId, projectId, subject, key]))
    .digest()
    .readInt32BE(0)
}
