import { CREATE_MANY_MAX, foundText } from '@carillon/api'
import type { CadenceSpec } from '@carillon/cadence'

import { nextDueAfter, noSlotAhead } from '../cadences/cadence-cache.ts'
import type { Tx } from '../db/database.ts'
import { isConnectionInDoubt } from '../db/sqlstate.ts'
import { Batcher } from '../kernel/batcher.ts'
import { invalidInput } from '../kernel/errors.ts'
import { identifiersAt } from '../kernel/ids.ts'
import { type Caller, scopeOf } from '../kernel/scope.ts'
import type { Schedule } from '../ledger/records.ts'
import type { SchedulePolicy } from '../policy/schedule-policy.ts'
import { changeEvent, refuseUnknownGrant, type SchedulerContext, transactWithRules } from './context.ts'
import { checkInputs, mapInputs, type CheckedInput, type InputRules, type ScheduleInput } from './input.ts'
import { insertSchedules, type NewSchedule } from './store/new-schedules.ts'

/** A create that waits for its batch. */
interface WaitingCreate {
  readonly input: ScheduleInput
  readonly resolve: (schedule: Schedule) => void
  readonly reject: (error: unknown) => void
}

/**
 * How many batches of one caller are written at the same time: while Postgres commits one, this process checks and sends another. With
 * more writers, batches would be smaller.
 */
const WRITERS = 2
const BATCH_MAX = 100

/**
 * Joins concurrent creates of one caller into batches. Each batch is one transaction, because a transaction costs many times as much as
 * one more schedule in it. A create that comes alone does not wait.
 *
 * Each create succeeds or fails by itself. If Postgres or a check refuses a batch, each of its creates is tried alone.
 */
export class CreateBatcher {
  readonly #context: SchedulerContext
  readonly #batchers = new Map<string, Batcher<WaitingCreate>>()

  constructor(context: SchedulerContext) {
    this.#context = context
  }

  create(caller: Caller, input: ScheduleInput): Promise<Schedule> {
    return new Promise((resolve, reject) => this.#batcherOf(caller).add({ input, resolve, reject }))
  }

  #batcherOf(caller: Caller): Batcher<WaitingCreate> {
    const key = JSON.stringify([caller.tenantId, caller.projectId, caller.subject])
    const known = this.#batchers.get(key)
    if (known !== undefined) return known
    const batcher = new Batcher<WaitingCreate>({
      batchMax: BATCH_MAX,
      writers: WRITERS,
      write: (batch) => writeBatch(this.#context, caller, batch),
      onIdle: () => this.#batchers.delete(key),
      onRejection: (error) => this.#context.events.emit('service.failed', { service: 'creates', error }),
    })
    this.#batchers.set(key, batcher)
    return batcher
  }
}

async function writeBatch(context: SchedulerContext, caller: Caller, batch: readonly WaitingCreate[]): Promise<void> {
  try {
    const inputs = batch.map(({ input }) => input)
    const schedules = batch.length === 1 ? null : await createTogether(context, caller, inputs)
    if (schedules !== null) {
      for (const [index, schedule] of schedules.entries()) batch[index]?.resolve(schedule)
      return
    }
    await Promise.all(
      batch.map(({ input, resolve, reject }) => createOne(context, caller, input).then(resolve, reject)),
    )
  } catch (error) {
    // The batch may be committed: trying its creates again could create them twice.
    for (const { reject } of batch) reject(error)
  }
}

async function createOne(context: SchedulerContext, caller: Caller, input: ScheduleInput): Promise<Schedule> {
  const schedule = await transactWithRules(context, caller, (tx, rules) =>
    insertInput(context, tx, caller, input, rules),
  )
  emitCreated(context, caller, [schedule.id])
  return schedule
}

/**
 * Creates several schedules in one transaction, all or none.
 * @returns null if the transaction failed and wrote nothing
 * @throws if the connection broke during the commit: then it is unknown whether the schedules exist
 */
async function createTogether(
  context: SchedulerContext,
  caller: Caller,
  inputs: readonly ScheduleInput[],
): Promise<Schedule[] | null> {
  let isWritten = false
  try {
    const schedules = await transactWithRules(context, caller, async (tx, rules) => {
      isWritten = false
      const created = await insertInputs(context, tx, caller, { inputs, rules, rootOf: () => '' })
      isWritten = true
      return created.map(({ schedule, checked }) => toSchedule(schedule, checked, caller, rules.now))
    })
    emitCreated(
      context,
      caller,
      schedules.map(({ id }) => id),
    )
    return schedules
  } catch (error) {
    if (isWritten && isConnectionInDoubt(error)) throw error
    return null
  }
}

/** Creates up to `CREATE_MANY_MAX` schedules in one transaction, all or none. */
export async function createMany(
  context: SchedulerContext,
  caller: Caller,
  inputs: readonly ScheduleInput[],
): Promise<string[]> {
  const list = checkedList(inputs)
  const ids = await transactWithRules(context, caller, (tx, rules) => insertMany(context, tx, caller, list, rules))
  emitCreated(context, caller, ids)
  return ids
}

/** Checks one input and inserts its schedule. */
export async function insertInput(
  context: SchedulerContext,
  tx: Tx,
  caller: Caller,
  input: ScheduleInput,
  rules: InputRules,
): Promise<Schedule> {
  const [created] = await insertInputs(context, tx, caller, { inputs: [input], rules, rootOf: () => '' })
  if (created === undefined) throw new Error('expected a schedule for the input, got none')
  return toSchedule(created.schedule, created.checked, caller, rules.now)
}

/** Checks a list of inputs and inserts their schedules. Returns their ids in the order of the inputs. */
export async function insertMany(
  context: SchedulerContext,
  tx: Tx,
  caller: Caller,
  inputs: readonly unknown[],
  rules: InputRules,
): Promise<string[]> {
  const created = await insertInputs(context, tx, caller, { inputs, rules, rootOf: rootInList })
  return created.map(({ schedule }) => schedule.id)
}

async function insertInputs(
  context: SchedulerContext,
  tx: Tx,
  caller: Caller,
  given: { inputs: readonly unknown[]; rules: InputRules; rootOf: (index: number) => string },
): Promise<{ schedule: NewSchedule; checked: CheckedInput }[]> {
  const { now } = given.rules
  const inputs = await checkInputs(tx, caller, given)
  const ids = identifiersAt(now, inputs.length)
  const grantIds = identifiersAt(now, inputs.length)
  const created = mapInputs(inputs, given.rootOf, (checked, index) => {
    const identity = { id: ids[index] ?? '', grantId: grantIds[index] ?? '' }
    return { checked, schedule: toNewSchedule(checked, identity, caller, now) }
  })
  const schedules = created.map(({ schedule }) => schedule)
  const write = { ...scopeOf(caller), schedules, actor: caller.subject, now: context.clock.databaseNow() }
  await refuseUnknownGrant(insertSchedules(tx, write))
  return created
}

/** @param identity the id of the schedule, and the id that a grant of its own gets if the input names no grant */
function toNewSchedule(
  checked: CheckedInput,
  { id, grantId }: { id: string; grantId: string },
  caller: Caller,
  now: number,
): NewSchedule {
  const { spreadSeconds, autoPauseThreshold } = checked.policy
  const { nextSlotAt, dueAt } = nextDueAfter(checked.cadence, now, { id, spreadSeconds })
  if (nextSlotAt === null || dueAt === null) throw noSlotAhead()
  return {
    id,
    ownerSubject: checked.ownerSubject ?? caller.subject,
    name: checked.name,
    cadenceKind: checked.cadence.rule.kind,
    cadence: checked.cadence.json,
    targetKind: checked.target.kind,
    target: JSON.stringify(checked.target),
    policy: checked.policyJson,
    autoPauseThreshold,
    requiredScope: checked.requiredScope,
    grantId: checked.grantId ?? grantId,
    isGrantOwn: checked.grantId === null,
    nextSlotAt,
    dueAt,
  }
}

/** The schedule as a read would return it. No other transaction can change it before this one commits. */
function toSchedule(
  created: NewSchedule,
  { grantExpiresAt }: CheckedInput,
  { tenantId, projectId, subject }: Caller,
  now: number,
): Schedule {
  return {
    id: created.id,
    tenantId,
    projectId,
    ownerSubject: created.ownerSubject,
    name: created.name,
    state: 'active',
    revision: 1,
    // Parsed from the stored text: it has no undefined fields, and the caller may change it without changing the cache.
    cadence: JSON.parse(created.cadence) as CadenceSpec,
    target: JSON.parse(created.target) as Schedule['target'],
    policy: JSON.parse(created.policy) as SchedulePolicy,
    grantId: created.grantId,
    grantExpiresAt,
    isGrantRevoked: false,
    nextSlotAt: created.nextSlotAt,
    dueAt: created.dueAt,
    excludedSlots: [],
    runCount: 0,
    failureCount: 0,
    consecutiveFailures: 0,
    createdBy: subject,
    createdAt: now,
    updatedBy: null,
    updatedAt: null,
    pausedBy: null,
    pausedReason: null,
    pausedAt: null,
  }
}

/** The path of an input in a list. */
export function rootInList(index: number): string {
  return `schedules[${index}]`
}

/** @throws CarillonError `invalid_input` unless `inputs` is a list of 1 to `CREATE_MANY_MAX` items */
export function checkedList(inputs: unknown): readonly unknown[] {
  if (Array.isArray(inputs) && inputs.length > 0 && inputs.length <= CREATE_MANY_MAX) return inputs
  const found = Array.isArray(inputs) ? `${inputs.length} of them` : foundText(inputs)
  throw invalidInput([
    {
      path: 'schedules',
      message: `expected a list of 1 to ${CREATE_MANY_MAX} schedules, got ${found}: make several calls`,
    },
  ])
}

export function emitCreated({ events }: SchedulerContext, caller: Caller, ids: readonly string[]): void {
  for (const id of ids) events.emit('schedule.created', changeEvent(caller, id))
}
