import { describeMoment } from '../english/moment-phrase.ts'
import { localDraft } from '../local-draft.ts'
import { isRefusal, MOMENT_EXPECTED, parseMoment } from '../moment-text.ts'
import { formatMoment, readMoment } from '../moment.ts'
import type { Moment } from '../moment.ts'
import type { CadenceDraft, ParseContext } from '../parse-context.ts'
import { quote } from '../problem.ts'
import { WallList } from '../wall-list.ts'
import { FIRST_INSTANT, LAST_INSTANT } from '../wall.ts'
import { findZone } from '../zone.ts'
import { dstPolicy, readDst, readZone, refuseDst } from '../zoned-input.ts'

const ALWAYS = { from: FIRST_INSTANT, to: LAST_INSTANT, maxRuns: null }

export function readOnce(context: ParseContext): CadenceDraft | undefined {
  const { reader } = context
  const text = reader.requiredText('at', MOMENT_EXPECTED)
  // Twice makes no sense for what happens once.
  const dstSpec = readDst(context, ['first', 'second'])
  const zone = readZone(context, zoneNameIn(text))
  const moment = text === undefined || zone === undefined ? undefined : readMoment(context, text, 'at', zone)
  if (text === undefined || zone === undefined || moment === undefined) return undefined
  if (!isSound(context, moment, text)) return undefined
  const spec = { kind: 'once', at: formatMoment(moment), timezone: zone.name } as const
  const shared = { closest: Infinity, phrase: () => `Once, on ${describeMoment(moment, zone)}` }
  const list = new WallList([moment.at])
  if (moment.kind === 'instant') {
    refuseDst(context)
    // Instants need no walk: the list of them is the source.
    return { ...shared, ...ALWAYS, spec, zone, source: list, local: null }
  }
  const local = localDraft(list, dstPolicy(dstSpec, 'fixed'), zone, ALWAYS)
  return { ...shared, ...local, spec: dstSpec === undefined ? spec : { ...spec, dst: dstSpec } }
}

/** A zone in brackets is the cadence's, unless it has one of its own. */
function zoneNameIn(text: string | undefined): string | undefined {
  const written = text === undefined ? undefined : parseMoment(text)
  if (written === undefined || isRefusal(written) || written.zoneName === null) return undefined
  return findZone(written.zoneName)?.name
}

function isSound({ reader, problems }: ParseContext, { kind, at }: Moment, text: string): boolean {
  if (at < FIRST_INSTANT || at > LAST_INSTANT) {
    problems.add('out_of_range', 'at', 'a day from 1970-01-02 to 9999-12-30', quote(text))
    return false
  }
  if (kind === 'wall' && !text.includes('[') && !reader.has('timezone')) {
    problems.add('missing_field', 'timezone', 'the zone of a local time, or an offset such as Z in "at"', 'nothing')
    return false
  }
  return true
}
