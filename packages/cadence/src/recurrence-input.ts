import { readBounds } from './bounds-input.ts'
import type { Bounds } from './bounds-input.ts'
import type { ParseContext } from './parse-context.ts'
import type { DstSpec } from './spec.ts'
import { UTC } from './zone.ts'
import type { Zone } from './zone.ts'
import { readDst, readZone } from './zoned-input.ts'

/** What cron, rrule and frequency have in common. */
export interface Recurrence {
  readonly zone: Zone
  readonly dst: DstSpec | undefined
  readonly bounds: Bounds
}

/** The zone also where the rest is wrong, so that what is read in it is not blamed for that. */
export function readRecurrence(context: ParseContext): { zone: Zone | undefined; recurrence: Recurrence | undefined } {
  const dst = readDst(context)
  const zone = readZone(context)
  // Read even where the zone is wrong, so that their problems are told as well.
  const bounds = readBounds(context, zone ?? UTC)
  return { zone, recurrence: zone === undefined || bounds === undefined ? undefined : { zone, dst, bounds } }
}

/** The fields of every recurring spec. */
export function recurrenceSpec({
  zone,
  dst,
  bounds,
}: Recurrence): Bounds['spec'] & { timezone: string; dst?: DstSpec } {
  return { timezone: zone.name, ...bounds.spec, ...(dst === undefined ? {} : { dst }) }
}
