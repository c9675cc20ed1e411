import type { Caller, Schedule, Scheduler } from '@carillon/core'

/** From an instant to another, the latter excluded. */
export interface Span {
  readonly from: number
  readonly to: number
}

interface Earliest {
  /** By their next slot. */
  readonly schedules: readonly Schedule[]
  /** No slot from here on can be among the earliest. */
  readonly to: number
  /** Whether some were left out that have slots within the span. */
  readonly isCut: boolean
}

const SCHEDULES_MAX = 10_000
const PAGE = 200

/**
 * The active schedules that can have one of the `count` earliest slots of a span. Each has at least its next one, so that
 * of more than `count` schedules those with the latest next slots have none among them.
 */
export async function earliestSchedules(
  scheduler: Pick<Scheduler, 'list'>,
  caller: Caller,
  span: Span,
  count: number,
): Promise<Earliest> {
  let earliest: Earliest = { schedules: [], to: span.to, isCut: false }
  let before: string | undefined
  for (let read = 0; read < SCHEDULES_MAX; read += PAGE) {
    const options = { state: 'active', limit: PAGE, ...(before === undefined ? {} : { before }) } as const
    const page = await scheduler.list(caller, options)
    earliest = withPage(earliest, page, span.from, count)
    before = page.at(-1)?.id
    if (page.length < PAGE) return earliest
  }
  return { ...earliest, isCut: true }
}

function withPage(earliest: Earliest, page: readonly Schedule[], from: number, count: number): Earliest {
  const { to, isCut } = earliest
  const schedules = [...earliest.schedules, ...page.filter((schedule) => nextOf(schedule) < to).map(withoutPayload)]
  schedules.sort((a, b) => nextOf(a) - nextOf(b))
  // What is overdue has its next slot before the span, and perhaps none within: it counts for nothing here.
  const overdue = schedules.filter((schedule) => nextOf(schedule) < from).length
  const kept = schedules.slice(0, overdue + count)
  const last = kept.at(-1)
  if (last === undefined || kept.length === schedules.length) return { schedules, to, isCut }
  return { schedules: kept, to: nextOf(last) + 1, isCut: true }
}

/** Of a schedule that is active there is one. */
function nextOf({ nextSlotAt }: Schedule): number {
  return nextSlotAt ?? Infinity
}

/** A payload may be a mebibyte, and nobody asks a calendar for it. */
function withoutPayload(schedule: Schedule): Schedule {
  return { ...schedule, target: { kind: schedule.target.kind } }
}
