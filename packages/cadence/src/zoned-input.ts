import { FOLD_POLICIES, GAP_POLICIES, defaultDst } from './dst-policy.ts'
import type { Density, DstPolicy, FoldPolicy } from './dst-policy.ts'
import type { ParseContext } from './parse-context.ts'
import { quote } from './problem.ts'
import type { DstSpec } from './spec.ts'
import { findZone } from './zone.ts'
import type { Zone } from './zone.ts'

/** The zone of a cadence; undefined, with a problem, if its name is none. */
export function readZone({ reader, problems }: ParseContext, fallback = 'UTC'): Zone | undefined {
  const name = reader.has('timezone') ? reader.text('timezone') : fallback
  if (name === undefined) return undefined
  const zone = findZone(name)
  if (zone === undefined) {
    problems.add('unknown_timezone', reader.pathOf('timezone'), 'an IANA time zone such as Europe/Madrid', quote(name))
  }
  return zone
}

/** The policy as given, for the spec; undefined if nothing was. */
export function readDst({ reader }: ParseContext, folds: readonly FoldPolicy[] = FOLD_POLICIES): DstSpec | undefined {
  const dst = reader.object('dst', ['gap', 'fold'])
  const gap = dst?.choice('gap', GAP_POLICIES)
  const fold = dst?.choice('fold', folds)
  if (gap === undefined && fold === undefined) return undefined
  return { ...(gap === undefined ? {} : { gap }), ...(fold === undefined ? {} : { fold }) }
}

/** A policy for local times where there are none would be dropped in silence otherwise. */
export function refuseDst({ reader, problems }: ParseContext): void {
  if (!reader.has('dst')) return
  problems.add(
    'conflict',
    'dst',
    'no policy for local times, because these slots are instants',
    quote(reader.value('dst')),
  )
}

/** The policy in force. */
export function dstPolicy(spec: DstSpec | undefined, density: Density): DstPolicy {
  return { ...defaultDst(density), ...spec }
}
