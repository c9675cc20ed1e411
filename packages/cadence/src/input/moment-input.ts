import { isRepeated, wallTimeOf } from '../slots/moment.ts'
import type { Moment } from '../slots/moment.ts'
import { MOMENT_EXPECTED, formatInstant, formatWallTime, isMomentProblem, parseMoment } from '../time/moment-text.ts'
import type { MomentText } from '../time/moment-text.ts'
import { MINUTE_MS } from '../time/wall-time.ts'
import type { WallTime } from '../time/wall-time.ts'
import { findZone } from '../time/zone.ts'
import type { Zone } from '../time/zone.ts'
import { foundText } from './found.ts'
import { chargeYear } from './parse-context.ts'
import type { ParseContext } from './parse-context.ts'

/** Reads a date and time in the zone of the cadence. Adds a problem and returns undefined for any other text. */
export function readMoment(context: ParseContext, text: string, path: string, zone: Zone): Moment | undefined {
  const { problems } = context
  const written = parseMoment(text)
  if (isMomentProblem(written)) problems.add(written.code, path, written.expected, foundText(text))
  else if (written.isDateOnly) problems.add('syntax', path, MOMENT_EXPECTED, foundText(text))
  else return momentOf(context, written, text, path, zone)
  return undefined
}

function momentOf(
  context: ParseContext,
  written: MomentText,
  text: string,
  path: string,
  zone: Zone,
): Moment | undefined {
  if (written.zoneName !== null && !isOwnZone(context, written.zoneName, path, zone)) return undefined
  if (written.offset === null) return { kind: 'wall', at: written.wall }
  const at = written.wall - written.offset
  if (written.zoneName === null || written.isZulu) return { kind: 'instant', at }
  chargeYear(context, at)
  const actual = zone.offsetAt(at)
  // RFC 9557 writes offsets to the minute, but a few historic offsets have seconds.
  if (Math.round(actual / MINUTE_MS) * MINUTE_MS === written.offset) {
    return { kind: 'instant', at: written.wall - actual }
  }
  const expected = `the offset that ${zone.name} has then (the clocks there show ${formatWallTime(at + actual)})`
  context.problems.add('conflict', path, expected, foundText(text))
  return undefined
}

function isOwnZone({ problems }: ParseContext, name: string, path: string, zone: Zone): boolean {
  const named = findZone(name)
  if (named === zone) return true
  if (named === undefined) problems.add('unknown_timezone', path, 'an IANA time zone in brackets', foundText(name))
  else problems.add('conflict', path, `the cadence's own zone, ${zone.name}`, foundText(name))
  return false
}

/**
 * The wall time of a moment that anchors a rule. An instant whose wall time happens twice adds a problem and gives
 * undefined: the rule could not tell the two passes apart.
 */
export function anchorWallTimeOf(
  { problems }: ParseContext,
  moment: Moment,
  path: string,
  zone: Zone,
): WallTime | undefined {
  if (moment.kind === 'wall' || !isRepeated(moment.at, zone)) return wallTimeOf(moment, zone)
  const expected = 'a local time (and dst.fold), because this instant lies in an hour that happens twice'
  problems.add('conflict', path, expected, formatInstant(moment.at))
  return undefined
}
