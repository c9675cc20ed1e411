import { createHash } from 'node:crypto'

import { canonicalJson, foundText, IDEMPOTENCY_KEY_MAX_LENGTH } from '@carillon/api'

import type { Tx } from '../db/database.ts'
import { CarillonError, invalidInput } from '../kernel/errors.ts'
import { type Caller, scopeOf } from '../kernel/scope.ts'
import type { Schedule } from '../ledger/records.ts'
import { transactWithRules, type SchedulerContext } from './context.ts'
import { checkedList, emitCreated, insertInput, insertMany, rootInList } from './create.ts'
import { mapInputs, requireJson, type InputRules, type ScheduleInput } from './input.ts'
import { findAnswer, saveAnswer, tryLockKey, type StoredAnswer } from './store/answers.ts'

export { ANSWERS_KEPT_MS, deleteAnswers } from './store/answers.ts'

/** The answer to a create with an Idempotency-Key. */
export interface CreatedOnce {
  /** The schedule as it was when it was created. */
  readonly schedule: Schedule
  /** True if an earlier request with this key created it. */
  readonly isReplayed: boolean
}

/** The answer to a create of several schedules with an Idempotency-Key. */
export interface CreatedManyOnce {
  /** The ids of the schedules, in the order of the inputs. */
  readonly ids: readonly string[]
  /** True if an earlier request with this key created them. */
  readonly isReplayed: boolean
}

const PRINTABLE = /^[ -~]+$/

export async function createOnce(
  context: SchedulerContext,
  caller: Caller,
  input: ScheduleInput,
  idempotencyKey: string,
): Promise<CreatedOnce> {
  const request = { key: idempotencyKey, hash: requestHash(caller.subject, input) }
  const { answer: schedule, isReplayed } = await answerOnce(context, caller, request, async (tx, rules) => {
    const created = await insertInput(context, tx, caller, input, rules)
    return { answer: created, scheduleId: created.id }
  })
  if (!isReplayed) emitCreated(context, caller, [schedule.id])
  return { schedule, isReplayed }
}

export async function createManyOnce(
  context: SchedulerContext,
  caller: Caller,
  inputs: readonly ScheduleInput[],
  idempotencyKey: string,
): Promise<CreatedManyOnce> {
  const list = checkedList(inputs)
  const hash = listHash(mapInputs(list, rootInList, (input) => requestHash(caller.subject, input)))
  const request = { key: idempotencyKey, hash }
  const { answer: ids, isReplayed } = await answerOnce(context, caller, request, async (tx, rules) => {
    const created = await insertMany(context, tx, caller, list, rules)
    return { answer: created, scheduleId: created[0] ?? '' }
  })
  if (!isReplayed) emitCreated(context, caller, ids)
  return { ids, isReplayed }
}

/**
 * Creates the schedules and stores the answer in one transaction, so a crash leaves both or neither. The transaction locks the key,
 * which tells concurrent requests with the key that this one is under way. Postgres releases the lock when the transaction ends, also
 * after a crash. It is not a lock of the session, so it works behind a pooler.
 */
async function answerOnce<Answer>(
  context: SchedulerContext,
  caller: Caller,
  request: { readonly key: string; readonly hash: Buffer },
  create: (tx: Tx, rules: InputRules) => Promise<{ answer: Answer; scheduleId: string }>,
): Promise<{ answer: Answer; isReplayed: boolean }> {
  const key = { ...scopeOf(caller), subject: caller.subject, key: checkedKey(request.key) }
  return transactWithRules(context, caller, async (tx, rules) => {
    const now = context.clock.databaseNow()
    const isLocked = await tryLockKey(tx, key)
    // A statement of its own, after the lock: it sees what the last holder of the lock committed.
    const known = await findAnswer(tx, { ...key, now })
    // The cast is safe: an answer is returned only to a request with the same hash, and the hash tells one schedule from a list.
    if (known !== undefined) return { answer: sameAnswer(known, request.hash) as Answer, isReplayed: true }
    if (!isLocked) throw inFlight()
    const created = await create(tx, rules)
    await saveAnswer(tx, { ...key, ...created, requestHash: request.hash, now })
    return { answer: created.answer, isReplayed: false }
  })
}

function checkedKey(key: unknown): string {
  if (typeof key === 'string' && key.length <= IDEMPOTENCY_KEY_MAX_LENGTH && PRINTABLE.test(key)) return key
  const message = `expected 1 to ${IDEMPOTENCY_KEY_MAX_LENGTH} printable ASCII characters, got ${foundText(key)}`
  throw invalidInput([{ path: 'Idempotency-Key', message }])
}

function sameAnswer({ requestHash: known, answer }: StoredAnswer, hash: Buffer): unknown {
  if (known.equals(hash)) return answer
  const message = 'expected the request that this key was first used for, got another one: use a key once per schedule'
  throw new CarillonError('idempotency_key_reused', message)
}

function inFlight(): CarillonError {
  const message =
    'expected no request under way with this key, got one: repeat the request in a moment to get its answer'
  return new CarillonError('idempotency_in_flight', message)
}

/**
 * SHA-256 of a request and its caller. The order of keys does not matter.
 * @throws CarillonError if the input cannot be stored as JSON
 */
function requestHash(subject: string, input: unknown): Buffer {
  requireJson(input)
  return createHash('sha256')
    .update(requestText([subject, input]))
    .digest()
}

/** SHA-256 of a list of requests in their order. It differs from the hash of every single request. */
function listHash(hashes: readonly Buffer[]): Buffer {
  const hash = createHash('sha256').update('batch')
  for (const each of hashes) hash.update(each)
  return hash.digest()
}

function requestText(request: unknown): string {
  try {
    return canonicalJson(request)
  } catch (error) {
    // Sorting takes a little more stack than the plain JSON.stringify of `requireJson`.
    if (!(error instanceof RangeError)) throw error
    throw invalidInput([
      { path: '', message: 'expected plain JSON, got a value that is nested too deeply: flatten it' },
    ])
  }
}
