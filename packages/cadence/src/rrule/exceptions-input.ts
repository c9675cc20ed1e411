import { readMoment } from '../input/moment-input.ts'
import type { ParseContext } from '../input/parse-context.ts'
import { CADENCE_LIMITS } from '../limits.ts'
import { ascending } from '../rules/sorted-list.ts'
import { formatDate, formatInstant, formatWallTime, isMomentProblem, parseMoment } from '../time/moment-text.ts'
import { DAY_MS, dayOf } from '../time/wall-time.ts'
import type { DayNumber, WallTime } from '../time/wall-time.ts'
import type { Zone } from '../time/zone.ts'

/** The dates that EXDATE removes and RDATE adds. Wall times follow the DST policy; instants are exact slots. */
export interface ExceptionDates {
  readonly removedWallTimes: ReadonlySet<WallTime>
  /** Dates without a time: the whole day is removed. */
  readonly removedDays: ReadonlySet<DayNumber>
  readonly removedInstants: ReadonlySet<number>
  /** Ascending. */
  readonly addedWallTimes: readonly WallTime[]
  /** Ascending. */
  readonly addedInstants: readonly number[]
  /** The same dates in their canonical form. */
  readonly spec: { readonly exdates?: readonly string[]; readonly rdates?: readonly string[] }
}

export function readExceptions(context: ParseContext, zone: Zone): ExceptionDates {
  const removed = readRemoved(context, zone)
  const added = readAdded(context, zone)
  const exdates = [
    ...[...removed.removedDays].map((day) => formatDate(day * DAY_MS)),
    ...[...removed.removedWallTimes].map(formatWallTime),
    ...[...removed.removedInstants].map(formatInstant),
  ].toSorted()
  const rdates = [...added.addedWallTimes.map(formatWallTime), ...added.addedInstants.map(formatInstant)]
  const spec = { ...(exdates.length > 0 ? { exdates } : {}), ...(rdates.length > 0 ? { rdates } : {}) }
  return { ...removed, ...added, spec }
}

function readRemoved(
  context: ParseContext,
  zone: Zone,
): Pick<ExceptionDates, 'removedWallTimes' | 'removedDays' | 'removedInstants'> {
  const removedWallTimes = new Set<WallTime>()
  const removedDays = new Set<DayNumber>()
  const removedInstants = new Set<number>()
  for (const { text, path } of context.reader.texts('exdates', CADENCE_LIMITS.exceptionDates)) {
    const written = parseMoment(text)
    if (!isMomentProblem(written) && written.isDateOnly) {
      removedDays.add(dayOf(written.wall))
      continue
    }
    const moment = readMoment(context, text, path, zone)
    if (moment?.kind === 'wall') removedWallTimes.add(moment.at)
    if (moment?.kind === 'instant') removedInstants.add(moment.at)
  }
  return { removedWallTimes, removedDays, removedInstants }
}

function readAdded(context: ParseContext, zone: Zone): Pick<ExceptionDates, 'addedWallTimes' | 'addedInstants'> {
  const texts = context.reader.texts('rdates', CADENCE_LIMITS.exceptionDates)
  const moments = texts.flatMap(({ text, path }) => readMoment(context, text, path, zone) ?? [])
  const walls = moments.filter(({ kind }) => kind === 'wall').map(({ at }) => at)
  const instants = moments.filter(({ kind }) => kind === 'instant').map(({ at }) => at)
  return { addedWallTimes: ascending(walls), addedInstants: ascending(instants) }
}
