import { createHash } from 'node:crypto'

import { sql } from 'kysely'

import type { Caller } from '../caller.ts'
import { ADVISORY_LOCK_SPACE } from './advisory-lock.ts'
import type { Db, Tx } from './database.ts'
import { nowOf } from './now.ts'

/** Whose key it is: the same one of another project (I9), or of another user of it, is another. */
type KeyName = Caller & { readonly key: string }

/** What a create was answered. */
export interface IdempotentAnswer {
  /** SHA-256 of what was asked for. */
  readonly requestHash: Buffer
  /** As JSON. */
  readonly answer: unknown
}

/** Beside the locks that have a number of their own. */
const KEY_LOCK_SPACE = ADVISORY_LOCK_SPACE + 1
/** For how long an answer is given again. */
export const ANSWERS_KEPT_MS = 86_400_000

/**
 * Takes a key for the rest of the transaction; false if another one holds it. Two keys may share a lock by chance, one in
 * four billion: then one of them is told to try again.
 */
export async function tryLockKey(tx: Tx, p: KeyName): Promise<boolean> {
  const { rows } = await sql<{ is_locked: boolean }>`
    select pg_try_advisory_xact_lock(${KEY_LOCK_SPACE}::int, ${lockOf(p)}::int) as is_locked`.execute(tx)
  return rows[0]?.is_locked === true
}

/** What was answered within the last day. An older answer is none, though upkeep may not have deleted it yet. */
export async function findAnswer(tx: Tx, p: KeyName & { now: Date | null }): Promise<IdempotentAnswer | undefined> {
  const { rows } = await sql<{ request_hash: Buffer; answer: unknown }>`
    select answers.request_hash, answers.answer
    from carillon.idempotent_answers as answers
    where answers.tenant_id = ${p.tenantId} and answers.project_id = ${p.projectId}
      and answers.subject = ${p.subject} and answers.key = ${p.key}
      and answers.answered_at > ${nowOf(p.now)} - ${ANSWERS_KEPT_MS} * interval '1 millisecond'`.execute(tx)
  const [row] = rows
  return row && { requestHash: row.request_hash, answer: row.answer }
}

/**
 * Remembers an answer, in the place of one that is too old. Call with the key locked.
 * @param p `scheduleId` is what was made; of several the first
 */
export async function saveAnswer(
  tx: Tx,
  p: KeyName & IdempotentAnswer & { scheduleId: string; now: Date | null },
): Promise<void> {
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

/** Forgets answers that were given before an instant; returns how many. Whoever asks with such a key again asks anew. */
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
