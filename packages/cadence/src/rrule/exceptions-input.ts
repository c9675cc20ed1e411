import { formatDate, formatInstant, formatWall, isRefusal, parseMoment } from '../moment-text.ts'
import { readMoment } from '../moment.ts'
import type { ParseContext } from '../parse-context.ts'
import { ascending } from '../sorted-list.ts'
import { DAY_MS, dayOf } from '../wall.ts'
import type { DayNumber, Wall } from '../wall.ts'
import type { Zone } from '../zone.ts'

/** At most so many `exdates`, and so many `rdates`. */
export const DATES_MAX = 1000

/** EXDATE and RDATE. Local times follow the DST policy; instants name a slot beyond doubt. */
export interface Exceptions {
  readonly removedWalls: ReadonlySet<Wall>
  /** A date alone: nothing happens all day. */
  readonly removedDays: ReadonlySet<DayNumber>
  readonly removedInstants: ReadonlySet<number>
  /** Ascending. */
  readonly addedWalls: readonly Wall[]
  /** Ascending. */
  readonly addedInstants: readonly number[]
  /** For the spec. */
  readonly spec: { readonly exdates?: readonly string[]; readonly rdates?: readonly string[] }
}

export function readExceptions(context: ParseContext, zone: Zone): Exceptions {
  const removed = readRemoved(context, zone)
  const added = readAdded(context, zone)
  const exdates = [
    ...[...removed.removedDays].map((day) => formatDate(day * DAY_MS)),
    ...[...removed.removedWalls].map(formatWall),
    ...[...removed.removedInstants].map(formatInstant),
  ].toSorted()
  const rdates = [...added.addedWalls.map(formatWall), ...added.addedInstants.map(formatInstant)]
  const spec = { ...(exdates.length > 0 ? { exdates } : {}), ...(rdates.length > 0 ? { rdates } : {}) }
  return { ...removed, ...added, spec }
}

function readRemoved(
  context: ParseContext,
  zone: Zone,
): Pick<Exceptions, 'removedWalls' | 'removedDays' | 'removedInstants'> {
  const removedWalls = new Set<Wall>()
  const removedDays = new Set<DayNumber>()
  const removedInstants = new Set<number>()
  for (const { text, path } of context.reader.texts('exdates', DATES_MAX)) {
    const written = parseMoment(text)
    if (!isRefusal(written) && written.isDateOnly) {
      removedDays.add(dayOf(written.wall))
      continue
    }
    const moment = readMoment(context, text, path, zone)
    if (moment?.kind === 'wall') removedWalls.add(moment.at)
    if (moment?.kind === 'instant') removedInstants.add(moment.at)
  }
  return { removedWalls, removedDays, removedInstants }
}

function readAdded(context: ParseContext, zone: Zone): Pick<Exceptions, 'addedWalls' | 'addedInstants'> {
  const texts = context.reader.texts('rdates', DATES_MAX)
  const moments = texts.flatMap(({ text, path }) => readMoment(context, text, path, zone) ?? [])
  const walls = moments.filter(({ kind }) => kind === 'wall').map(({ at }) => at)
  const instants = moments.filter(({ kind }) => kind === 'instant').map(({ at }) => at)
  return { addedWalls: ascending(walls), addedInstants: ascending(instants) }
}
