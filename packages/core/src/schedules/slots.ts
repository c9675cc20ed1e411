import { PREVIEW_COUNT, SLOT_COUNT } from '@carillon/api'

import { readCadence, searchSlots } from '../cadences/cadence-cache.ts'
import { readTransactionTime } from '../db/now.ts'
import { checkedCount, checkedInstant } from '../kernel/arguments.ts'
import { invalidInput } from '../kernel/errors.ts'
import type { Caller } from '../kernel/scope.ts'
import type { Schedule } from '../ledger/records.ts'
import type { SchedulerContext } from './context.ts'
import type { Preview, PreviewInput, ScheduleSlot, SlotRange } from './options.ts'
import { getIn } from './reads.ts'

export async function preview(context: SchedulerContext, { cadence, from, count }: PreviewInput): Promise<Preview> {
  const { transact, clock, cadences, minimumSeconds } = context
  const now = await transact(null, (tx) => readTransactionTime(tx, clock.databaseNow()))
  const result = cadences.parseInput(cadence, { minimumSeconds, now })
  if (!result.ok) throw invalidInput(result.problems)
  const { rule } = result.cadence
  const start = checkedInstant(from, 'from') ?? now
  const limit = checkedCount(count ?? PREVIEW_COUNT.default, PREVIEW_COUNT.max, 'count')
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
  const from = checkedInstant(range.from, 'from')
  const to = checkedInstant(range.to, 'to')
  const limit = checkedCount(range.limit ?? SLOT_COUNT.default, SLOT_COUNT.max, 'limit')
  const { schedule, now } = await context.transact(caller, async (tx) => ({
    schedule: await getIn(tx, caller, id),
    now: await readTransactionTime(tx, context.clock.databaseNow()),
  }))
  return slotsOf(schedule, { from: from ?? now, to: to ?? Infinity, limit })
}

/**
 * The slots in `[from, to)` of a schedule that the caller has read, without a query. `Scheduler.slots` takes an id instead.
 * @throws CarillonError `invalid_input` if this version cannot read the cadence, or cannot find its slots
 */
export function slotsOf(schedule: Schedule, { from, to, limit }: Required<SlotRange>): ScheduleSlot[] {
  const cadence = readCadence(schedule.cadence)
  const excluded = new Set(schedule.excludedSlots)
  return searchSlots('from', () => cadence.slots(from, { limit, ...(to === Infinity ? {} : { to }) })).map((slot) => ({
    scheduledFor: slot,
    local: cadence.local(slot),
    isSkipped: excluded.has(slot),
  }))
}
