import { createHash } from 'node:crypto'

import { DAY_MS } from '@carillon/api'

import { boolean, bytes, columns, json, uuid } from '../../db/columns.ts'
import type { Db, Tx } from '../../db/database.ts'
import { lockSpace } from '../../db/locks.ts'
import { nowOf } from '../../db/now.ts'
import { sql } from '../../db/sql.ts'
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

/** How long a repeated request gets the stored answer. A request with the same key that comes later creates again. */
export const ANSWERS_KEPT_MS = DAY_MS

/**
 * Locks a key for the rest of the transaction; false if another transaction holds it. Two keys share a lock with a chance of one in
 * four billion: if their requests come at the same time, one of them is refused and can be sent again.
 */
export async function tryLockKey(tx: Tx, p: KeyName): Promise<boolean> {
  const lock = sql`pg_try_advisory_xact_lock(${lockSpace('idempotencyKeys')}, ${lockOf(p)}::int)`
  const [row] = await sql`select ${columns('key', { isLocked: boolean.as(lock) })}`.execute(tx)
  return row?.isLocked === true
}

const ANSWER_COLUMNS = columns('answers', { requestHash: bytes, scheduleId: uuid, answer: json<unknown>() })

/** An answer of the last day. An older one does not count, even if upkeep has not deleted it yet. */
export async function findAnswer(tx: Tx, p: KeyName & { now: Date | null }): Promise<StoredAnswer | undefined> {
  const [answer] = await sql`
    select ${ANSWER_COLUMNS}
    from idempotent_answers as answers
    where answers.tenant_id = ${p.tenantId} and answers.project_id = ${p.projectId}
      and answers.subject = ${p.subject} and answers.key = ${p.key}
      and answers.answered_at > ${nowOf(p.now)} - ${ANSWERS_KEPT_MS} * interval '1 millisecond'`.execute(tx)
  return answer
}

/** Stores an answer, and replaces one that is too old. Call with the key locked. */
export async function saveAnswer(tx: Tx, p: KeyName & StoredAnswer & { now: Date | null }): Promise<void> {
  await sql`
    insert into idempotent_answers (
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
  const rows = await sql`
    delete from idempotent_answers as answers
    where answers.ctid = any(array(
      select old.ctid
      from idempotent_answers as old
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
