import type { CadenceSpec } from '@carillon/cadence'

import type { Caller } from '../caller.ts'
import type { SchedulePolicy } from '../policy/schedule-policy.ts'
import type { Schedule } from '../schedule.ts'
import { checkSchedules, eachOf } from './checked-schedules.ts'
import { checkedList, rootOf } from './created-schedules.ts'
import { transactByRules } from './input-rules.ts'
import { noSlotAhead } from './refusals.ts'
import { findingSlots } from './schedule-cadence.ts'
import type { CheckedInput, ScheduleInput } from './schedule-input.ts'
import type { SchedulerContext } from './scheduler-context.ts'
import type { Preview } from './scheduler-options.ts'

/** What a create would make, with every default filled in, and what its cadence would do. */
export interface CreatePlan extends Preview {
  readonly name: string
  readonly cadence: CadenceSpec
  readonly target: Schedule['target']
  readonly policy: SchedulePolicy
  /** Null: one of its own, made with it. */
  readonly grantId: string | null
  readonly ownerSubject: string
}

const SLOTS_SHOWN = 5

/** Refuses what a create would refuse, and writes nothing. */
export async function planCreate(context: SchedulerContext, caller: Caller, input: ScheduleInput): Promise<CreatePlan> {
  const [plan] = await planInputs(context, caller, [input], () => '')
  if (plan === undefined) throw new Error('an input was neither taken nor refused')
  return plan
}

/** The same for several: all that is wrong with any of them is told. */
export async function planCreateMany(
  context: SchedulerContext,
  caller: Caller,
  inputs: readonly ScheduleInput[],
): Promise<CreatePlan[]> {
  return planInputs(context, caller, checkedList(inputs), rootOf)
}

async function planInputs(
  context: SchedulerContext,
  caller: Caller,
  inputs: readonly unknown[],
  rootAt: (index: number) => string,
): Promise<CreatePlan[]> {
  const { all, now } = await transactByRules(context, caller, async (tx, rules) => ({
    all: await checkSchedules(context, tx, caller, { inputs, rules, rootOf: rootAt }),
    now: rules.now,
  }))
  return eachOf(all, rootAt, ({ checked }) => planOf(checked, caller, now))
}

function planOf(checked: CheckedInput, caller: Caller, now: number): CreatePlan {
  const { name, cadence, target, policy, grantId, ownerSubject } = checked
  return findingSlots('cadence', () => {
    if (cadence.next(now) === null) throw noSlotAhead()
    return {
      name,
      cadence: cadence.spec,
      // As it would come back from the database: what is undefined is not there.
      target: JSON.parse(JSON.stringify(target)) as Schedule['target'],
      policy,
      grantId,
      ownerSubject: ownerSubject ?? caller.subject,
      description: cadence.describe(),
      slots: cadence
        .slots(now + 1, { limit: SLOTS_SHOWN })
        .map((slot) => ({ scheduledFor: slot, local: cadence.local(slot) })),
      warnings: cadence.warnings(now),
    }
  })
}
