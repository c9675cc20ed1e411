import type { CadenceSpec } from '@carillon/cadence'

import type { Caller } from '../caller.ts'
import { placeOf } from '../place.ts'
import type { SchedulePolicy } from '../policy/schedule-policy.ts'
import type { Schedule } from '../schedule.ts'
import { readRules, requireOwner, requireSecrets } from './input-rules.ts'
import { noSlotAhead } from './refusals.ts'
import { findingSlots } from './schedule-cadence.ts'
import { grantForNew } from './schedule-grant.ts'
import { checkInput, type ScheduleInput } from './schedule-input.ts'
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
  const { checked, now } = await context.transact(caller, async (tx) => {
    const rules = await readRules(context, tx, caller)
    const checked = checkInput(input, rules)
    await requireOwner(tx, caller, checked)
    await requireSecrets(context, tx, caller, checked)
    const { grantId, requiredScope: scope } = checked
    await grantForNew(tx, { place: placeOf(caller), scheduleId: '', grantId, scope, now: rules.now })
    return { checked, now: rules.now }
  })
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
