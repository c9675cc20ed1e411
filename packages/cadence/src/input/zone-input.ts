import { FOLD_POLICIES, GAP_POLICIES } from '../time/dst-policy.ts'
import type { DstSpec, FoldPolicy } from '../time/dst-policy.ts'
import { findZone } from '../time/zone.ts'
import type { Zone } from '../time/zone.ts'
import { foundText } from './found.ts'
import type { ParseContext } from './parse-context.ts'

/** The zone of a cadence. Adds a problem and returns undefined if the name is unknown. */
export function readZone({ reader, problems }: ParseContext, fallback = 'UTC'): Zone | undefined {
  const name = reader.has('timezone') ? reader.text('timezone') : fallback
  if (name === undefined) return undefined
  const zone = findZone(name)
  if (zone === undefined) {
    problems.add(
      'unknown_timezone',
      reader.pathOf('timezone'),
      'an IANA time zone such as Europe/Madrid',
      foundText(name),
    )
  }
  return zone
}

/** The `dst` field as written; undefined if it is absent. */
export function readDst({ reader }: ParseContext, folds: readonly FoldPolicy[] = FOLD_POLICIES): DstSpec | undefined {
  const dst = reader.object('dst', ['gap', 'fold'])
  const gap = dst?.choice('gap', GAP_POLICIES)
  const fold = dst?.choice('fold', folds)
  if (gap === undefined && fold === undefined) return undefined
  return { ...(gap === undefined ? {} : { gap }), ...(fold === undefined ? {} : { fold }) }
}

/** Rejects `dst` on a cadence whose slots are instants: it would have no effect. */
export function rejectDst({ reader, problems }: ParseContext): void {
  if (!reader.has('dst')) return
  problems.add(
    'conflict',
    'dst',
    'no dst policy, because the slots of this cadence are instants',
    foundText(reader.value('dst')),
  )
}
