import { describeMoment } from '../english/time-phrase.ts'
import { createLocalDraft } from '../input/cadence-draft.ts'
import type { CadenceDraft } from '../input/cadence-draft.ts'
import { foundText } from '../input/found.ts'
import { readMoment } from '../input/moment-input.ts'
import type { ParseContext } from '../input/parse-context.ts'
import { readDst, readZone, rejectDst } from '../input/zone-input.ts'
import { WallTimeList } from '../rules/wall-time-rule.ts'
import { formatMoment } from '../slots/moment.ts'
import type { Moment } from '../slots/moment.ts'
import { resolveDst } from '../time/dst-policy.ts'
import { MOMENT_EXPECTED, isMomentProblem, parseMoment } from '../time/moment-text.ts'
import { FIRST_INSTANT, LAST_INSTANT } from '../time/wall-time.ts'
import { findZone } from '../time/zone.ts'

const UNBOUNDED = { from: FIRST_INSTANT, to: LAST_INSTANT, maxRuns: null }

export function parseOnceCadence(context: ParseContext): CadenceDraft | undefined {
  const { reader } = context
  const text = reader.requiredText('at', MOMENT_EXPECTED)
  // No `both`: a cadence of one slot cannot run in both passes.
  const dstSpec = readDst(context, ['first', 'second'])
  const zone = readZone(context, zoneNameIn(text))
  const moment = text === undefined || zone === undefined ? undefined : readMoment(context, text, 'at', zone)
  if (text === undefined || zone === undefined || moment === undefined) return undefined
  if (!isValid(context, moment, text)) return undefined
  const spec = { kind: 'once', at: formatMoment(moment), timezone: zone.name } as const
  const shared = { closestMs: Infinity, listedTimes: 0, phrase: () => `Once, on ${describeMoment(moment, zone)}` }
  const list = new WallTimeList([moment.at])
  if (moment.kind === 'instant') {
    rejectDst(context)
    // The slot is an instant already, so the list serves as the source and no zone is involved.
    return { ...shared, ...UNBOUNDED, spec, zone, source: list, local: null }
  }
  const local = createLocalDraft(list, resolveDst(dstSpec, 'fixed'), zone, UNBOUNDED)
  return { ...shared, ...local, spec: dstSpec === undefined ? spec : { ...spec, dst: dstSpec } }
}

/** The zone in brackets, which is the default for `timezone`. */
function zoneNameIn(text: string | undefined): string | undefined {
  const written = text === undefined ? undefined : parseMoment(text)
  if (written === undefined || isMomentProblem(written) || written.zoneName === null) return undefined
  return findZone(written.zoneName)?.name
}

function isValid({ reader, problems }: ParseContext, { kind, at }: Moment, text: string): boolean {
  if (at < FIRST_INSTANT || at > LAST_INSTANT) {
    problems.add('out_of_range', 'at', 'a day from 1970-01-02 to 9999-12-30', foundText(text))
    return false
  }
  if (kind === 'wall' && !text.includes('[') && !reader.has('timezone')) {
    problems.add('missing_field', 'timezone', 'the zone of a local time, or an offset such as Z in "at"', 'nothing')
    return false
  }
  return true
}
