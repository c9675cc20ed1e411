import type { Bounds } from './bounds-input.ts'
import type { DstPolicy } from './dst-policy.ts'
import type { CadenceDraft } from './parse-context.ts'
import { SlotWalk } from './slot-walk.ts'
import type { WallRule } from './wall-rule.ts'
import type { Zone } from './zone.ts'

type Range = Pick<Bounds, 'from' | 'maxRuns' | 'to'>

type LocalDraft = Pick<CadenceDraft, 'from' | 'local' | 'maxRuns' | 'source' | 'to' | 'zone'>

/** What every kind whose slots are local times makes of them. */
export function localDraft(rule: WallRule, dst: DstPolicy, zone: Zone, bounds: Range): LocalDraft {
  const { from, to, maxRuns } = bounds
  return { zone, source: new SlotWalk(rule, zone, dst), local: { rule, dst }, from, to, maxRuns }
}
