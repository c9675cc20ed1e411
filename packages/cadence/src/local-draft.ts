import type { Bounds } from './bounds-input.ts'
import type { DstPolicy } from './dst-policy.ts'
import type { CadenceDraft } from './parse-context.ts'
import { SlotWalk } from './slot-walk.ts'
import type { WallRule } from './wall-rule.ts'
import type { Zone } from './zone.ts'

type LocalDraft = Pick<CadenceDraft, 'from' | 'local' | 'maxRuns' | 'source' | 'to' | 'zone'>

/** What every kind whose slots are local times makes of them. */
export function localDraft(rule: WallRule, dst: DstPolicy, zone: Zone, { from, to, maxRuns }: Bounds): LocalDraft {
  return { zone, source: new SlotWalk(rule, zone, dst), local: { rule, dst }, from, to, maxRuns }
}
