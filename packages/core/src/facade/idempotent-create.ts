import type { Caller } from '../caller.ts'
import { CarillonError, invalidInput } from '../errors.ts'
import { placeOf } from '../place.ts'
import { foundText } from '../policy/found-text.ts'
import type { Schedule } from '../schedule.ts'
import type { Tx } from '../store/database.ts'
import { findAnswer, saveAnswer, tryLockKey, type IdempotentAnswer } from '../store/idempotent-answers.ts'
import { insertInput } from './created-schedule.ts'
import { transactByRules } from './input-rules.ts'
import { requestHash } from './request-hash.ts'
import type { InputContext, ScheduleInput } from './schedule-input.ts'
import { changeEvent, type SchedulerContext } from './scheduler-context.ts'

/** A schedule that was made once, however often it was asked for. */
export interface CreatedOnce {
  /** As it was when it was made. */
  readonly schedule: Schedule
  /** Whether it had been made before. */
  readonly isReplayed: boolean
}

const KEY = /^[ -~]{1,255}$/

export async function createOnce(
  context: SchedulerContext,
  caller: Caller,
  input: ScheduleInput,
  idempotencyKey: string,
): Promise<CreatedOnce> {
  const request = { key: idempotencyKey, hash: requestHash(caller.subject, input) }
  const { answer: schedule, isReplayed } = await answerOnce(context, caller, request, async (tx, rules) => {
    const made = await insertInput(context, tx, caller, input, rules)
    return { answer: made, scheduleId: made.id }
  })
  if (!isReplayed) context.events.emit('schedule.created', changeEvent(caller, schedule.id))
  return { schedule, isReplayed }
}

/**
 * What is made and its answer are one transaction, so a crash leaves both or neither. Who comes while it is under way is told
 * by a lock of that transaction, which a crash lets go of; nothing is kept in the session, so a pooler may stand between.
 */
export async function answerOnce<Answer>(
  context: SchedulerContext,
  caller: Caller,
  request: { readonly key: string; readonly hash: Buffer },
  make: (tx: Tx, rules: InputContext) => Promise<{ answer: Answer; scheduleId: string }>,
): Promise<{ answer: Answer; isReplayed: boolean }> {
  const key = { ...placeOf(caller), subject: caller.subject, key: checkedKey(request.key) }
  return transactByRules(context, caller, async (tx, rules) => {
    const now = context.clock.databaseNow()
    const isLocked = await tryLockKey(tx, key)
    // A statement of its own, after the lock: it sees what whoever held the lock before has committed.
    const known = await findAnswer(tx, { ...key, now })
    // The hash of the request says which kind of answer it is.
    if (known !== undefined) return { answer: sameAnswer(known, request.hash) as Answer, isReplayed: true }
    if (!isLocked) throw inFlight()
    const made = await make(tx, rules)
    await saveAnswer(tx, { ...key, ...made, requestHash: request.hash, now })
    return { answer: made.answer, isReplayed: false }
  })
}

function checkedKey(key: unknown): string {
  if (typeof key === 'string' && KEY.test(key)) return key
  const message = `expected 1 to 255 printable ASCII characters, got ${foundText(key)}`
  throw invalidInput([{ path: 'Idempotency-Key', message }])
}

function sameAnswer({ requestHash: known, answer }: IdempotentAnswer, hash: Buffer): unknown {
  if (known.equals(hash)) return answer
  const message = 'expected the request that this key was first used for, got another one: use a key once per schedule'
  throw new CarillonError('idempotency_key_reused', message)
}

function inFlight(): CarillonError {
  const message = 'a request with this key is under way: ask again in a moment, and get its answer'
  return new CarillonError('idempotency_in_flight', message)
}
