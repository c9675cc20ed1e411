/**
 * Turns wall times into instants: the one place where the clocks change.
 *
 * A zone is a row of segments of constant offset, and inside one segment wall time and instant differ by a constant. So a
 * walk looks at one segment at a time, and a DST policy is only a matter of its edges:
 *
 *   W1. A gap at a segment's start hides the wall times [start + before, start + offset). With `shift`, if the rule names
 *       any of them, the segment's start itself is a slot (one, however many were hidden).
 *   W2. A fold at a segment's start shows the wall times [start + offset, start + before) a second time: `first` leaves
 *       them out of the segment that follows, `second` out of the one that precedes, `both` out of none.
 *   W3. Slots of different segments cannot interleave, so the first slot of the first segment that has one is the next.
 *   W4. No change of the clocks reaches back two days. So once a segment's last two days were seen and the rule names
 *       nothing sooner than `ahead`, everything before `ahead` less two days may be passed over.
 */
import type { DstPolicy } from './dst-policy.ts'
import type { SlotSource } from './slot-source.ts'
import type { StepBudget } from './step-budget.ts'
import type { WallRule } from './wall-rule.ts'
import { DAY_MS, FIRST_WALL, LAST_WALL } from './wall.ts'
import { STEPS_PER_ZONE_YEAR } from './zone.ts'
import type { Segment, Zone } from './zone.ts'

const REACH_MS = 2 * DAY_MS

// A year has some three segments. Charged every time, or the answer would depend on what was asked before.
const STEPS_PER_SEGMENT = STEPS_PER_ZONE_YEAR / 3

export class SlotWalk implements SlotSource {
  readonly #rule: WallRule
  readonly #zone: Zone
  readonly #dst: DstPolicy

  constructor(rule: WallRule, zone: Zone, dst: DstPolicy) {
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
      if (segment.end > LAST_WALL || (ahead === null && isTailSeen)) return null
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
      if (segment.start < FIRST_WALL || (behind === null && isHeadSeen)) return null
      const resume = behind !== null && isHeadSeen ? Math.min(segment.start - 1, behind + REACH_MS) : segment.start - 1
      budget.spend(resume === segment.start - 1 ? STEPS_PER_SEGMENT : STEPS_PER_ZONE_YEAR)
      segment = this.#zone.segmentAt(resume)
      high = segment.end
    }
  }

  /** The first slot of a segment after `low`; if there is none, the next wall time that the rule names. */
  #firstIn(segment: Segment, low: number, budget: StepBudget): { slot: number | null; ahead: number | null } {
    if (segment.start > low && this.#startsWithShiftedSlot(segment, budget)) return { slot: segment.start, ahead: null }
    const from = Math.max(low + segment.offset, this.#openingWall(segment) - 1) // exclusive
    const wall = this.#rule.next(from, budget)
    if (wall === null || wall >= this.#closingWall(segment)) return { slot: null, ahead: wall }
    return { slot: wall - segment.offset, ahead: null }
  }

  /** The last slot of a segment before `high`; if there is none, the previous wall time that the rule names. */
  #lastIn(segment: Segment, high: number, budget: StepBudget): { slot: number | null; behind: number | null } {
    const until = Math.min(high + segment.offset, this.#closingWall(segment)) // exclusive
    const wall = this.#rule.previous(until, budget)
    if (wall !== null && wall >= this.#openingWall(segment)) return { slot: wall - segment.offset, behind: null }
    const isShifted = segment.start < high && this.#startsWithShiftedSlot(segment, budget)
    return isShifted ? { slot: segment.start, behind: null } : { slot: null, behind: wall }
  }

  #startsWithShiftedSlot({ start, offset }: Segment, budget: StepBudget): boolean {
    if (start === -Infinity || this.#dst.gap === 'skip') return false
    const before = this.#zone.segmentAt(start - 1).offset
    if (before >= offset) return false
    const hidden = this.#rule.next(start + before - 1, budget)
    return hidden !== null && hidden < start + offset
  }

  /** The first wall time that counts in a segment. */
  #openingWall({ start, offset }: Segment): number {
    if (start === -Infinity) return -Infinity
    const before = this.#zone.segmentAt(start - 1).offset
    const isFold = before > offset
    return start + (isFold && this.#dst.fold === 'first' ? before : offset)
  }

  /** The first wall time that no longer counts in a segment. */
  #closingWall({ end, offset }: Segment): number {
    if (end === Infinity) return Infinity
    const after = this.#zone.segmentAt(end).offset
    const isFold = after < offset
    return end + (isFold && this.#dst.fold === 'second' ? after : offset)
  }
}
