import type { Caller } from '../caller.ts'
import { invalidInput } from '../errors.ts'
import type { Schedule } from '../schedule.ts'
import { readNow } from '../store/now.ts'
import { checkedCount, checkedInstant } from './checked-arguments.ts'
import { cadenceOf, findingSlots } from './schedule-cadence.ts'
import { checkCadence } from './schedule-input.ts'
import { getIn } from './schedule-reads.ts'
import type { SchedulerContext } from './scheduler-context.ts'
import type { Preview, PreviewInput, ScheduleSlot, SlotRange } from './scheduler-options.ts'

const PREVIEW_DEFAULT = 5
const PREVIEW_MAX = 100
const SLOTS_DEFAULT = 50
const SLOTS_MAX = 1000

export async function preview(context: SchedulerContext, { cadence, from, count }: PreviewInput): Promise<Preview> {
  const { transact, clock, minimumSeconds } = context
  const now = await transact(null, (tx) => readNow(tx, clock.databaseNow()))
  const checked = checkCadence(cadence, { minimumSeconds, now })
  if (!checked.ok) throw invalidInput(checked.problems)
  const start = checkedInstant(from, 'from') ?? now
  const limit = checkedCount(count ?? PREVIEW_DEFAULT, PREVIEW_MAX, 'count')
  return findingSlots('from', () => ({
    description: checked.value.describe(),
    slots: checked.value
      .slots(start, { limit })
      .map((slot) => ({ scheduledFor: slot, local: checked.value.local(slot) })),
    warnings: checked.value.warnings(start),
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
  const limit = checkedCount(range.limit ?? SLOTS_DEFAULT, SLOTS_MAX, 'limit')
  const { schedule, now } = await context.transact(caller, async (tx) => ({
    schedule: await getIn(tx, caller, id),
    now: await readNow(tx, context.clock.databaseNow()),
  }))
  return slotsOf(schedule, { from: from ?? now, to: to ?? Infinity, limit })
}

/**
 * The slots in `[from, to)` of a schedule that was read already; asks nobody. `Scheduler.slots` for one of which only the
 * id is known.
 * @throws CarillonError `invalid_input` if the cadence cannot be read or followed any more
 */
export function slotsOf(schedule: Schedule, { from, to, limit }: Required<SlotRange>): ScheduleSlot[] {
  const cadence = cadenceOf(schedule)
  const excluded = new Set(schedule.excludedSlots)
  return findingSlots('from', () => cadence.slots(from, { limit, ...(to === Infinity ? {} : { to }) })).map((slot) => ({
    scheduledFor: slot,
    local: cadence.local(slot),
    isSkipped: excluded.has(slot),
  }))
}
