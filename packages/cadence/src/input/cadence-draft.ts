import type { WallTimeRule } from '../rules/wall-time-rule.ts'
import type { SlotSource } from '../slots/slot-source.ts'
import { SlotWalk } from '../slots/slot-walk.ts'
import type { CadenceSpec } from '../spec.ts'
import type { DstPolicy } from '../time/dst-policy.ts'
import type { Zone } from '../time/zone.ts'
import type { Bounds } from './recurrence-input.ts'

/** What the reader of a kind, such as `parseCronCadence`, builds from valid fields. `parse` checks it before it becomes a `Cadence`. */
export interface CadenceDraft {
  readonly spec: CadenceSpec
  readonly zone: Zone
  readonly source: SlotSource
  /** The wall times behind the slots, and the DST policy; null for an instant or an elapsed interval. */
  readonly local: { readonly rule: WallTimeRule; readonly dst: DstPolicy } | null
  /** First and last instant that may be a slot, both inclusive. */
  readonly from: number
  readonly to: number
  readonly maxRuns: number | null
  /** No two wall times of the rule are closer than this; Infinity for a cadence with one slot. */
  readonly closestMs: number
  /** How many times the rule lists in memory: times of day, or offsets within a period. */
  readonly listedTimes: number
  /** Slots from `rdates`, ascending. They may lie closer than `closestMs` to other slots. */
  readonly added?: readonly number[]
  /** The last slot that `maxRuns` allows, if arithmetic yields it. Without this field `parse` counts slots. */
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
