/** What all kinds are checked for once they are read: that slots come due, not too close, and where they end. */
import { countOf } from './english/words.ts'
import { formatWall } from './moment-text.ts'
import type { CadenceDraft, ParseContext } from './parse-context.ts'
import type { SlotSource } from './slot-source.ts'
import { findClosePair } from './spacing.ts'
import { SearchLimitError } from './step-budget.ts'
import type { StepBudget } from './step-budget.ts'
import { SECOND_MS } from './wall.ts'

/** Two slots closer than the minimum, in words: by rule where the rule tells, else over a horizon. */
export function findTooClose(draft: CadenceDraft, minimumMs: number, budget: StepBudget): string | undefined {
  const { local, closest } = draft
  if (local === null) return closest < minimumMs ? countOf(closest / SECOND_MS, 'second') : undefined
  const start = draft.from + draft.zone.offsetAt(draft.from)
  const pair = closest < minimumMs ? findClosePair(local.rule, start, minimumMs, budget) : undefined
  const [earlier, later] = pair ?? crowded(draft, minimumMs, budget)
  if (earlier === undefined || later === undefined) return undefined
  return `${countOf((later - earlier) / SECOND_MS, 'second')} (${formatWall(earlier)} and ${formatWall(later)})`
}

/** A slot that was added too close to another. */
function crowded({ source, added = [], from, to }: CadenceDraft, minimumMs: number, budget: StepBudget): number[] {
  for (const slot of added.filter((at) => at >= from && at <= to)) {
    const neighbours = [source.previous(slot, budget), source.next(slot, budget)].filter((at) => at !== null)
    const near = neighbours.find((at) => at >= from && at <= to && Math.abs(at - slot) < minimumMs)
    if (near !== undefined) return [Math.min(near, slot), Math.max(near, slot)]
  }
  return []
}

/** The instant that ends the cadence, `maxRuns` counted out; undefined if it has no slot at all. */
export function lastSlot(draft: CadenceDraft, { problems, budget }: ParseContext): number | undefined {
  const { source, from, to, maxRuns, last } = draft
  const first = source.next(from - 1, budget)
  if (first === null || first > to) return undefined
  probe(source, first, budget)
  if (maxRuns === null || last !== undefined) return Math.min(to, last ?? to)
  try {
    return countedSlot(source, first, to, maxRuns, budget)
  } catch (error) {
    if (!(error instanceof SearchLimitError)) throw error
    const expected = 'a number that is reached within a few decades (endAt has no such limit)'
    problems.add('too_complex', 'maxRuns', expected, `${maxRuns}`)
    return to
  }
}

const PROBED_SLOTS = 2

/** A rule that thins out after its first slot is refused now, not when the scheduler asks for the next. */
function probe(source: SlotSource, first: number, budget: StepBudget): void {
  let slot: number | null = first
  for (let probed = 0; probed < PROBED_SLOTS && slot !== null; probed += 1) slot = source.next(slot, budget)
}

/** The slot with that number, the first being 1, or the end if it comes before. */
function countedSlot(source: SlotSource, first: number, to: number, number: number, budget: StepBudget): number {
  let last = first
  for (let counted = 1; counted < number; counted += 1) {
    const slot = source.next(last, budget)
    if (slot === null || slot > to) return to
    last = slot
  }
  return last
}
