import type { WallTimeRule } from '../rules/wall-time-rule.ts'
import type { SlotSource } from '../slots/slot-source.ts'
import { SlotWalk } from '../slots/slot-walk.ts'
import type { CadenceSpec } from '../spec.ts'
import type { DstPolicy } from '../time/dst-policy.ts'
import type { Zone } from '../time/zone.ts'
import type { Bounds } from './recurrence-input.ts'

/** What the reader of a kind makes of valid fields. `parse` checks it as a whole before it becomes a cadence. */
export interface CadenceDraft {
  readonly spec: CadenceSpec
  readonly zone: Zone
  readonly source: SlotSource
  /** The wall times behind the slots and the policy for clock changes; null if the slots are instants by nature. */
  readonly local: { readonly rule: WallTimeRule; readonly dst: DstPolicy } | null
  /** First and last instant that may be a slot, both inclusive. */
  readonly from: number
  readonly to: number
  readonly maxRuns: number | null
  /** Lower bound of the distance between two wall times of the rule; Infinity for a cadence with one slot. */
  readonly closestMs: number
  /** Slots from `rdates`, ascending. They may lie closer than `closestMs` to other slots. */
  readonly added?: readonly number[]
  /** The last slot that `maxRuns` allows, if it follows by arithmetic; otherwise `parse` counts slots. */
  readonly last?: number
  /** Describes the rule in English, without zone and bounds. A function, because most cadences are never described. */
  readonly phrase: () => string
}

type LocalDraft = Pick<CadenceDraft, 'from' | 'local' | 'maxRuns' | 'source' | 'to' | 'zone'>

/** The part of a draft that all kinds with wall times share. */
export function createLocalDraft(
  rule: WallTimeRule,
  dst: DstPolicy,
  zone: Zone,
  { from, to, maxRuns }: Pick<Bounds, 'from' | 'maxRuns' | 'to'>,
): LocalDraft {
  return { zone, source: new SlotWalk(rule, zone, dst), local: { rule, dst }, from, to, maxRuns }
}
