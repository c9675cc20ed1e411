import type { CadenceSpec } from '@carillon/cadence'

import type { Caller } from '../caller.ts'
import type { SchedulePolicy } from '../policy/schedule-policy.ts'
import type { Schedule } from '../schedule.ts'
import { findGrant } from '../store/grants.ts'
import { readNow } from '../store/now.ts'
import { noSlotAhead, unknownGrant } from './refusals.ts'
import { findingSlots } from './schedule-cadence.ts'
import { checkInput, type ScheduleInput } from './schedule-input.ts'
import { within, type SchedulerContext } from './scheduler-context.ts'
import type { Preview } from './scheduler-options.ts'

/** What a create would make, with every default filled in, and what its cadence would do. */
export interface CreatePlan extends Preview {
  readonly name: string
  readonly cadence: CadenceSpec
  readonly target: Schedule['target']
  readonly policy: SchedulePolicy
  readonly grantId: string | null
  readonly ownerSubject: string
}

const SLOTS_SHOWN = 5

/** Refuses what a create would refuse, and writes nothing. */
export async function planCreate(context: SchedulerContext, caller: Caller, input: ScheduleInput): Promise<CreatePlan> {
  const { db, clock, targets, minimumSeconds } = context
  const now = await readNow(db, clock.databaseNow())
  const { name, cadence, target, policy, grantId, ownerSubject } = checkInput(input, { targets, minimumSeconds, now })
  if (grantId !== null && (await findGrant(db, { ...within(caller), id: grantId })) === undefined) throw unknownGrant()
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
