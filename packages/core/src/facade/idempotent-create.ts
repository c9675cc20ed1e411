import type { Caller } from '../caller.ts'
import { CarillonError, invalidInput } from '../errors.ts'
import { placeOf } from '../place.ts'
import { foundText } from '../policy/found-text.ts'
import type { Schedule } from '../schedule.ts'
import { findAnswer, saveAnswer, tryLockKey, type IdempotentAnswer } from '../store/idempotent-answers.ts'
import { insertInput } from './created-schedule.ts'
import { requestHash } from './request-hash.ts'
import type { ScheduleInput } from './schedule-input.ts'
import { getIn } from './schedule-reads.ts'
import { changeEvent, type SchedulerContext } from './scheduler-context.ts'

/** A schedule that was made once, however often it was asked for. */
export interface CreatedOnce {
  /** As it was when it was made. */
  readonly schedule: Schedule
  /** Whether it had been made before. */
  readonly isReplayed: boolean
}

const KEY = /^[ -~]{1,255}$/

/**
 * The schedule and the answer are one transaction, so a crash leaves both or neither. Who comes while it is under way is told
 * by a lock of that transaction, which a crash lets go of; nothing is kept in the session, so a pooler may stand between.
 */
export async function createOnce(
  context: SchedulerContext,
  caller: Caller,
  input: ScheduleInput,
  idempotencyKey: string,
): Promise<CreatedOnce> {
  const key = { ...placeOf(caller), subject: caller.subject, key: checkedKey(idempotencyKey) }
  const hash = requestHash(caller.subject, input)
  const { transact, clock, events } = context
  const created = await transact(caller, async (tx) => {
    const now = clock.databaseNow()
    const isLocked = await tryLockKey(tx, key)
    // A statement of its own, after the lock: it sees what whoever held the lock before has committed.
    const answer = await findAnswer(tx, { ...key, now })
    if (answer !== undefined) return { schedule: sameAnswer(answer, hash), isReplayed: true }
    if (!isLocked) throw inFlight()
    const schedule = await getIn(tx, caller, await insertInput(context, tx, caller, input))
    await saveAnswer(tx, { ...key, requestHash: hash, schedule, now })
    return { schedule, isReplayed: false }
  })
  if (!created.isReplayed) events.emit('schedule.created', changeEvent(caller, created.schedule.id))
  return created
}

function checkedKey(key: unknown): string {
  if (typeof key === 'string' && KEY.test(key)) return key
  const message = `expected 1 to 255 printable ASCII characters, got ${foundText(key)}`
  throw invalidInput([{ path: 'Idempotency-Key', message }])
}

function sameAnswer({ requestHash, schedule }: IdempotentAnswer, hash: Buffer): Schedule {
  if (requestHash.equals(hash)) return schedule
  const message = 'expected the request that this key was first used for, got another one: use a key once per schedule'
  throw new CarillonError('idempotency_key_reused', message)
}

function inFlight(): CarillonError {
  const message = 'a request with this key is under way: ask again in a moment, and get its answer'
  return new CarillonError('idempotency_in_flight', message)
}
