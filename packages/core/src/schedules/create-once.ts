import { createHash } from 'node:crypto'

import { canonicalJson, idempotencyKeySchema, policySchema, SCHEDULE_STATES } from '@carillon/api'
import { z } from 'zod'

import type { Tx } from '../db/database.ts'
import { schemaProblems } from '../kernel/checked-object.ts'
import { CarillonError, invalidInput } from '../kernel/errors.ts'
import { type Caller, scopeOf } from '../kernel/scope.ts'
import type { Schedule } from '../ledger/records.ts'
import { transactWithRules, type SchedulerContext } from './context.ts'
import { checkedList, emitCreated, insertInput, insertMany, rootInList } from './create.ts'
import { mapInputs, requireJson, type InputRules, type ScheduleInput } from './input.ts'
import { findSchedule } from './reads.ts'
import { findAnswer, saveAnswer, tryLockKey, type StoredAnswer } from './store/answers.ts'

export { ANSWERS_KEPT_MS, deleteAnswers } from './store/answers.ts'

/** The answer to a create with an Idempotency-Key. */
export interface CreatedOnce {
  /** The schedule as it was when it was created; as it is now if another release created it and stored other fields. */
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

export async function createOnce(
  context: SchedulerContext,
  caller: Caller,
  input: ScheduleInput,
  idempotencyKey: string,
): Promise<CreatedOnce> {
  const request = { key: idempotencyKey, hash: requestHash(caller.subject, input) }
  const { answer: schedule, isReplayed } = await answerOnce(context, caller, request, {
    create: async (tx, rules) => {
      const created = await insertInput(context, tx, caller, input, rules)
      return { answer: created, scheduleId: created.id }
    },
    replay: async (tx, stored) => (isSchedule(stored.answer) ? stored.answer : readCreated(tx, caller, stored)),
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
  const { answer: ids, isReplayed } = await answerOnce(context, caller, request, {
    create: async (tx, rules) => {
      const created = await insertMany(context, tx, caller, list, rules)
      return { answer: created, scheduleId: created[0] ?? '' }
    },
    replay: async (_tx, { answer }) => IDS.parse(answer),
  })
  if (!isReplayed) emitCreated(context, caller, ids)
  return { ids, isReplayed }
}

/** How one kind of request is answered for the first time, and how it is answered again. */
interface Answering<Answer> {
  readonly create: (tx: Tx, rules: InputRules) => Promise<{ answer: Answer; scheduleId: string }>
  readonly replay: (tx: Tx, stored: StoredAnswer) => Promise<Answer>
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
  { create, replay }: Answering<Answer>,
): Promise<{ answer: Answer; isReplayed: boolean }> {
  const key = { ...scopeOf(caller), subject: caller.subject, key: checkedKey(request.key) }
  return transactWithRules(context, caller, async (tx, rules) => {
    const now = context.clock.databaseNow()
    const isLocked = await tryLockKey(tx, key)
    // A statement of its own, after the lock: it sees what the last holder of the lock committed.
    const known = await findAnswer(tx, { ...key, now })
    if (known !== undefined) {
      if (!known.requestHash.equals(request.hash)) throw keyReused()
      return { answer: await replay(tx, known), isReplayed: true }
    }
    if (!isLocked) throw inFlight()
    const created = await create(tx, rules)
    await saveAnswer(tx, { ...key, ...created, requestHash: request.hash, now })
    return { answer: created.answer, isReplayed: false }
  })
}

function checkedKey(key: unknown): string {
  const parsed = idempotencyKeySchema.safeParse(key)
  if (parsed.success) return parsed.data
  throw invalidInput(schemaProblems(parsed.error, 'Idempotency-Key'))
}

function keyReused(): CarillonError {
  const message = 'expected the request that this key was first used for, got another one: use a key once per schedule'
  return new CarillonError('idempotency_key_reused', message)
}

const IDS = z.array(z.string())

const instant = z.int()
const anObject = (value: unknown): boolean => typeof value === 'object' && value !== null

/** A stored answer. The annotation makes a new field of `Schedule` fail to compile until it stands here too. */
const SCHEDULE: z.ZodType<Schedule> = z.object({
  id: z.string(),
  tenantId: z.string(),
  projectId: z.string(),
  ownerSubject: z.string(),
  name: z.string(),
  state: z.enum(SCHEDULE_STATES),
  revision: z.int(),
  cadence: z.custom<Schedule['cadence']>(anObject),
  target: z.custom<Schedule['target']>(anObject),
  policy: policySchema,
  grantId: z.string(),
  grantExpiresAt: instant.nullable(),
  isGrantRevoked: z.boolean(),
  nextSlotAt: instant.nullable(),
  dueAt: instant.nullable(),
  excludedSlots: z.array(instant),
  runCount: z.int(),
  failureCount: z.int(),
  consecutiveFailures: z.int(),
  createdBy: z.string(),
  createdAt: instant,
  updatedBy: z.string().nullable(),
  updatedAt: instant.nullable(),
  pausedBy: z.string().nullable(),
  pausedReason: z.string().nullable(),
  pausedAt: instant.nullable(),
})

function isSchedule(answer: unknown): answer is Schedule {
  return SCHEDULE.safeParse(answer).success
}

/**
 * The schedule as it is now, in place of an answer that another release stored with other fields. Creating it again would give the
 * caller two schedules for one request.
 */
async function readCreated(tx: Tx, caller: Caller, { scheduleId }: StoredAnswer): Promise<Schedule> {
  const schedule = await findSchedule(tx, { ...scopeOf(caller), id: scheduleId })
  if (schedule !== undefined) return schedule
  const message = 'expected a key whose schedule still exists, got one whose schedule was deleted: use another key'
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
