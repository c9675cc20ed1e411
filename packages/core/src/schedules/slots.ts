import { PREVIEW_COUNT, SLOT_COUNT } from '@carillon/api'

import { readCadence, searchSlots } from '../cadences/cadence-cache.ts'
import { readTransactionTime } from '../db/now.ts'
import { checkedObject } from '../kernel/checked-object.ts'
import { invalidInput } from '../kernel/errors.ts'
import type { Caller } from '../kernel/scope.ts'
import type { Schedule } from '../ledger/records.ts'
import type { SchedulerContext } from './context.ts'
import { PREVIEW_RANGE, SLOT_RANGE } from './options.ts'
import type { Preview, PreviewInput, ScheduleSlot, SlotRange } from './options.ts'
import { getIn } from './reads.ts'

export async function preview(context: SchedulerContext, { cadence, ...range }: PreviewInput): Promise<Preview> {
  const { transact, clock, cadences, minimumSeconds } = context
  const { from, count: limit = PREVIEW_COUNT.default } = checkedObject(range, PREVIEW_RANGE)
  const now = await transact(null, (tx) => readTransactionTime(tx, clock.databaseNow()))
  const result = cadences.parseInput(cadence, { minimumSeconds, now })
  if (!result.ok) throw invalidInput(result.problems)
  const { rule } = result.cadence
  const start = from ?? now
  return searchSlots('from', () => ({
    description: rule.describe(),
    slots: rule.slots(start, { limit }).map((slot) => ({ scheduledFor: slot, local: rule.local(slot) })),
    warnings: rule.warnings(start),
  }))
}

export async function slots(
  context: SchedulerContext,
  caller: Caller,
  id: string,
  range: SlotRange,
): Promise<ScheduleSlot[]> {
  const { from, to = Infinity, limit = SLOT_COUNT.default } = checkedObject(range, SLOT_RANGE)
  const { schedule, now } = await context.transact(caller, async (tx) => ({
    schedule: await getIn(tx, caller, id),
    now: await readTransactionTime(tx, context.clock.databaseNow()),
  }))
  return slotsOf(schedule, { from: from ?? now, to, limit })
}

/**
 * The slots in `[from, to)` of a schedule that the caller has read, without a query. `Scheduler.slots` takes an id instead.
 * @throws CarillonError `invalid_input` if this version cannot read the cadence, or cannot find its slots
 */
export function slotsOf(
  schedule: Schedule,
  { from, to, limit }: { readonly from: number; readonly to: number; readonly limit: number },
): ScheduleSlot[] {
  const cadence = readCadence(schedule.cadence)
  const excluded = new Set(schedule.excludedSlots)
  return searchSlots('from', () => cadence.slots(from, { limit, ...(to === Infinity ? {} : { to }) })).map((slot) => ({
    scheduledFor: slot,
    local: cadence.local(slot),
    isSkipped: excluded.has(slot),
  }))
}
