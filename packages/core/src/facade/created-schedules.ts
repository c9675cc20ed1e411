import type { Caller } from '../caller.ts'
import { invalidInput } from '../errors.ts'
import { foundText } from '../policy/found-text.ts'
import type { Tx } from '../store/database.ts'
import { eachOf } from './checked-schedules.ts'
import { insertInputs } from './created-schedule.ts'
import { answerOnce } from './idempotent-create.ts'
import { transactByRules } from './input-rules.ts'
import { batchHash, requestHash } from './request-hash.ts'
import type { InputContext, ScheduleInput } from './schedule-input.ts'
import { changeEvent, type SchedulerContext } from './scheduler-context.ts'

/** Schedules that were made once, however often they were asked for. */
export interface CreatedManyOnce {
  /** In the order of the inputs. */
  readonly ids: readonly string[]
  /** Whether they had been made before. */
  readonly isReplayed: boolean
}

/** What one transaction holds: more would keep whoever counts the same project waiting. */
const INPUTS_MAX = 5000

export async function createMany(
  context: SchedulerContext,
  caller: Caller,
  inputs: readonly ScheduleInput[],
): Promise<string[]> {
  const checked = checkedList(inputs)
  const ids = await transactByRules(context, caller, (tx, rules) => insertAll(context, tx, caller, checked, rules))
  tellOf(context, caller, ids)
  return ids
}

export async function createManyOnce(
  context: SchedulerContext,
  caller: Caller,
  inputs: readonly ScheduleInput[],
  idempotencyKey: string,
): Promise<CreatedManyOnce> {
  const checked = checkedList(inputs)
  const hash = batchHash(eachOf(checked, rootOf, (input) => requestHash(caller.subject, input)))
  const { answer: ids, isReplayed } = await answerOnce(
    context,
    caller,
    { key: idempotencyKey, hash },
    async (tx, rules) => {
      const made = await insertAll(context, tx, caller, checked, rules)
      return { answer: made, scheduleId: made[0] ?? '' }
    },
  )
  if (!isReplayed) tellOf(context, caller, ids)
  return { ids, isReplayed }
}

async function insertAll(
  context: SchedulerContext,
  tx: Tx,
  caller: Caller,
  inputs: readonly unknown[],
  rules: InputContext,
): Promise<string[]> {
  const made = await insertInputs(context, tx, caller, { inputs, rules, rootOf })
  return made.map(({ id }) => id)
}

/** Where an input of several stands. */
export function rootOf(index: number): string {
  return `schedules[${index}]`
}

/** @throws CarillonError `invalid_input` unless there are some, and not too many */
export function checkedList(inputs: unknown): readonly unknown[] {
  if (Array.isArray(inputs) && inputs.length > 0 && inputs.length <= INPUTS_MAX) return inputs
  const found = Array.isArray(inputs) ? `${inputs.length} of them` : foundText(inputs)
  throw invalidInput([
    { path: 'schedules', message: `expected a list of 1 to ${INPUTS_MAX} schedules, got ${found}: make several calls` },
  ])
}

function tellOf({ events }: SchedulerContext, caller: Caller, ids: readonly string[]): void {
  for (const id of ids) events.emit('schedule.created', changeEvent(caller, id))
}
