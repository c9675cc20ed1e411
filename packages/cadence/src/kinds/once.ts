import { MOMENT_EXPECTED, parseMoment } from '../moment-text.ts'
import type { CadenceDraft, ParseContext } from '../parse-context.ts'
import { quote } from '../problem.ts'
import { SlotWalk } from '../slot-walk.ts'
import { WallList } from '../wall-list.ts'
import { FIRST_WALL, LAST_WALL } from '../wall.ts'
import { findZone } from '../zone.ts'
import { dstPolicy, formatMoment, momentOf, readDst, readZone } from '../zoned-input.ts'

export function readOnce(context: ParseContext): CadenceDraft | undefined {
  const { reader, problems } = context
  const text = reader.requiredText('at', MOMENT_EXPECTED)
  // Twice makes no sense for what happens once.
  const dstSpec = readDst(context, ['first', 'second'])
  const written = text === undefined ? undefined : parseMoment(text)
  const zone = readZone(context, findZone(written?.zoneName ?? 'UTC')?.name)
  reader.refuseOthers()
  if (text === undefined) return undefined
  if (written === undefined || written.isDateOnly) {
    problems.add('syntax', 'at', MOMENT_EXPECTED, quote(text))
    return undefined
  }
  if (zone === undefined) return undefined
  const moment = momentOf(context, written, text, 'at', zone)
  if (moment === undefined) return undefined
  if (moment.kind === 'wall' && written.zoneName === null && !reader.has('timezone')) {
    problems.add('missing_field', 'timezone', 'the zone of a local time, or an offset such as Z in "at"', 'nothing')
    return undefined
  }
  const dst = dstPolicy(dstSpec, false)
  const list = new WallList([moment.at])
  const utc = findZone('UTC') ?? zone
  return {
    spec: {
      kind: 'once',
      at: formatMoment(moment),
      timezone: zone.name,
      ...(dstSpec === undefined ? {} : { dst: dstSpec }),
    },
    zone,
    dst,
    // An instant is a local time of UTC.
    source: new SlotWalk(list, moment.kind === 'instant' ? utc : zone, dst),
    wallRule: moment.kind === 'instant' ? null : list,
    from: FIRST_WALL,
    to: LAST_WALL,
    maxRuns: null,
    closest: Infinity,
    added: [],
    phrase: () => 'Once',
  }
}
