import type { StepBudget } from '../rules/step-budget.ts'
import type { WallTimeRule } from '../rules/wall-time-rule.ts'
import type { DstPolicy } from '../time/dst-policy.ts'
import { DAY_MS, FIRST_WALL_TIME, LAST_WALL_TIME } from '../time/wall-time.ts'
import { STEPS_PER_ZONE_YEAR } from '../time/zone.ts'
import type { Segment, Zone } from '../time/zone.ts'
import type { SlotSource } from './slot-source.ts'

/**
 * Turns wall times into instants. This is the only file that applies DST changes. Any change of a zone's UTC offset counts
 * as a DST change.
 *
 * A zone is a sequence of segments with constant offset. Inside one segment, wall time and instant differ by that offset.
 * The walk therefore searches one segment at a time, and the DST policy applies only at the edges of a segment. Below,
 * `before` is the offset of the preceding segment and `offset` the offset of the segment itself.
 *
 *   W1. A gap at a segment's start skips the wall times [start + before, start + offset). With `shift`, if the rule has
 *       any of them, the segment's start is a slot: one slot, however many wall times were skipped.
 *   W2. A fold at a segment's start repeats the wall times [start + offset, start + before). `first` ignores them in the
 *       segment itself, `second` ignores them in the preceding segment, `both` ignores them in neither.
 *   W3. Slots of different segments cannot interleave. The first slot of the first segment that has one is the next slot.
 *   W4. Every DST change moves the clocks by less than two days. So once the last two days of a segment were searched and
 *       the next wall time of the rule is `ahead`, the walk may jump to two days before `ahead`.
 */

/** Longer than any DST change moves the clocks. */
const REACH_MS = 2 * DAY_MS

// Search steps charged per segment: a zone year has about three. A cached segment costs the same, because the result must
// not depend on earlier calls.
const STEPS_PER_SEGMENT = STEPS_PER_ZONE_YEAR / 3

/** The slots of a rule in a zone under a DST policy. */
export class SlotWalk implements SlotSource {
  readonly #rule: WallTimeRule
  readonly #zone: Zone
  readonly #dst: DstPolicy

  constructor(rule: WallTimeRule, zone: Zone, dst: DstPolicy) {
    this.#rule = rule
    this.#zone = zone
    this.#dst = dst
  }

  next(after: number, budget: StepBudget): number | null {
    let segment = this.#zone.segmentAt(after)
    let low = after
    for (;;) {
      const { slot, ahead } = this.#firstIn(segment, low, budget)
      if (slot !== null) return slot
      const isTailSeen = segment.end - low > REACH_MS
      if (segment.end > LAST_WALL_TIME || (ahead === null && isTailSeen)) return null
      const resume = ahead !== null && isTailSeen ? Math.max(segment.end, ahead - REACH_MS) : segment.end
      budget.spend(resume === segment.end ? STEPS_PER_SEGMENT : STEPS_PER_ZONE_YEAR)
      segment = this.#zone.segmentAt(resume)
      low = segment.start - 1
    }
  }

  previous(before: number, budget: StepBudget): number | null {
    let segment = this.#zone.segmentAt(before - 1)
    let high = before
    for (;;) {
      const { slot, behind } = this.#lastIn(segment, high, budget)
      if (slot !== null) return slot
      const isHeadSeen = high - segment.start > REACH_MS
      if (segment.start < FIRST_WALL_TIME || (behind === null && isHeadSeen)) return null
      const resume = behind !== null && isHeadSeen ? Math.min(segment.start - 1, behind + REACH_MS) : segment.start - 1
      budget.spend(resume === segment.start - 1 ? STEPS_PER_SEGMENT : STEPS_PER_ZONE_YEAR)
      segment = this.#zone.segmentAt(resume)
      high = segment.end
    }
  }

  /** The first slot of a segment after `low`. If there is none, `ahead` is the next wall time of the rule. */
  #firstIn(segment: Segment, low: number, budget: StepBudget): { slot: number | null; ahead: number | null } {
    if (segment.start > low && this.#startsWithShiftedSlot(segment, budget)) return { slot: segment.start, ahead: null }
    const from = Math.max(low + segment.offset, this.#openingWall(segment) - 1) // exclusive
    const wall = this.#rule.next(from, budget)
    if (wall === null || wall >= this.#closingWall(segment)) return { slot: null, ahead: wall }
    return { slot: wall - segment.offset, ahead: null }
  }

  /** The last slot of a segment before `high`. If there is none, `behind` is the previous wall time of the rule. */
  #lastIn(segment: Segment, high: number, budget: StepBudget): { slot: number | null; behind: number | null } {
    const until = Math.min(high + segment.offset, this.#closingWall(segment)) // exclusive
    const wall = this.#rule.previous(until, budget)
    if (wall !== null && wall >= this.#openingWall(segment)) return { slot: wall - segment.offset, behind: null }
    const isShifted = segment.start < high && this.#startsWithShiftedSlot(segment, budget)
    return isShifted ? { slot: segment.start, behind: null } : { slot: null, behind: wall }
  }

  /** W1: true if the rule has a wall time in the gap before the segment, and the policy shifts it. */
  #startsWithShiftedSlot({ start, offset }: Segment, budget: StepBudget): boolean {
    if (start === -Infinity || this.#dst.gap === 'skip') return false
    const before = this.#zone.segmentAt(start - 1).offset
    if (before >= offset) return false
    const skipped = this.#rule.next(start + before - 1, budget)
    return skipped !== null && skipped < start + offset
  }

  /** The first wall time of a segment that is not a repetition to ignore (W2 above). */
  #openingWall({ start, offset }: Segment): number {
    if (start === -Infinity) return -Infinity
    const before = this.#zone.segmentAt(start - 1).offset
    const isFold = before > offset
    return start + (isFold && this.#dst.fold === 'first' ? before : offset)
  }

  /** The end, exclusive, of the wall times of a segment that are not repetitions to ignore (W2 above). */
  #closingWall({ end, offset }: Segment): number {
    if (end === Infinity) return Infinity
    const after = this.#zone.segmentAt(end).offset
    const isFold = after < offset
    return end + (isFold && this.#dst.fold === 'second' ? after : offset)
  }
}
