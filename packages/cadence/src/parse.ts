import { Cadence, SEARCH_STEPS } from './cadence.ts'
import { InputReader, isRecord } from './input-reader.ts'
import { readCron } from './kinds/cron.ts'
import { readFrequency } from './kinds/frequency.ts'
import { readInterval } from './kinds/interval.ts'
import { readOnce } from './kinds/once.ts'
import { readRRule } from './kinds/rrule.ts'
import { formatWall } from './moment-text.ts'
import type { CadenceDraft, ParseContext } from './parse-context.ts'
import { ProblemList, quote } from './problem.ts'
import type { Problem } from './problem.ts'
import type { SlotSource } from './slot-source.ts'
import { findTooClose } from './spacing.ts'
import { CADENCE_KINDS } from './spec.ts'
import type { CadenceKind } from './spec.ts'
import { StepBudget, StepsSpentError } from './step-budget.ts'
import { SECOND_MS } from './wall.ts'
import type { Wall } from './wall.ts'

const MINIMUM_SECONDS_DEFAULT = 60

export interface ParseOptions {
  /** Epoch milliseconds; anchors what the input leaves open. Without it such input is a problem. */
  readonly now?: number
  /** The least distance of two slots. @default 60 */
  readonly minimumSeconds?: number
}

export type ParseResult =
  | { readonly ok: true; readonly cadence: Cadence }
  | { readonly ok: false; readonly problems: readonly Problem[] }

const READERS: Readonly<Record<CadenceKind, (context: ParseContext) => CadenceDraft | undefined>> = {
  once: readOnce,
  cron: readCron,
  rrule: readRRule,
  interval: readInterval,
  frequency: readFrequency,
}

/** The field to blame when the rule as a whole is at fault. */
const RULE_FIELDS: Readonly<Record<CadenceKind, string>> = {
  once: 'at',
  cron: 'expression',
  rrule: 'rule',
  interval: 'every',
  frequency: 'frequency',
}

/**
 * Reads any value as a cadence. Never throws, whatever the input; always ends within a fixed number of steps.
 * @throws RangeError if the options are no numbers: they are the program's, not the user's.
 */
export function parse(input: unknown, options: ParseOptions = {}): ParseResult {
  const problems = new ProblemList()
  checkOptions(options)
  const cadence = read(input, options, problems)
  if (cadence !== undefined && problems.isEmpty) return { ok: true, cadence }
  return { ok: false, problems: problems.toArray() }
}

function checkOptions({ now = 0, minimumSeconds = 0 }: ParseOptions): void {
  if (!Number.isFinite(now)) throw new RangeError(`expected "now" in epoch milliseconds, got ${now}`)
  if (!(minimumSeconds >= 0)) throw new RangeError(`expected "minimumSeconds" to be 0 or more, got ${minimumSeconds}`)
}

function read(input: unknown, options: ParseOptions, problems: ProblemList): Cadence | undefined {
  if (!isRecord(input)) {
    problems.add('wrong_type', '', 'an object with the field "kind"', quote(input))
    return undefined
  }
  const reader = new InputReader(input, problems)
  if (!reader.has('kind')) problems.add('missing_field', 'kind', `one of ${CADENCE_KINDS.join(', ')}`, 'nothing')
  const kind = reader.choice('kind', CADENCE_KINDS)
  if (kind === undefined) return undefined
  const context = { reader, problems, budget: new StepBudget(SEARCH_STEPS), now: options.now ?? null }
  try {
    const draft = READERS[kind](context)
    reader.refuseOthers()
    return draft === undefined ? undefined : check(draft, options, context)
  } catch (error) {
    if (!(error instanceof StepsSpentError)) throw error
    const expected = 'a rule whose slots are found in a fixed number of steps'
    problems.add('too_complex', RULE_FIELDS[kind], expected, 'one that takes more')
    return undefined
  }
}

/** What no single field can tell. */
function check(draft: CadenceDraft, options: ParseOptions, context: ParseContext): Cadence | undefined {
  checkDistance(draft, (options.minimumSeconds ?? MINIMUM_SECONDS_DEFAULT) * SECOND_MS, context)
  const to = lastSlot(draft, context)
  if (to !== undefined) return new Cadence(draft, to)
  const field = RULE_FIELDS[draft.spec.kind]
  context.problems.add('never_fires', field, 'a rule with at least one slot', 'one that never comes due')
  return undefined
}

/** By rule where the rule tells, else over a horizon. */
function checkDistance(draft: CadenceDraft, minimumMs: number, { problems, budget }: ParseContext): void {
  const { wallRule, closest, spec } = draft
  const refuse = (found: string): void =>
    problems.add(
      'too_frequent',
      RULE_FIELDS[spec.kind],
      `at least ${minimumMs / SECOND_MS} seconds between two slots`,
      found,
    )
  if (wallRule === null) {
    if (closest < minimumMs) refuse(`${closest / SECOND_MS} seconds`)
    return
  }
  const pair = closest < minimumMs ? findTooClose(wallRule, draft.from, minimumMs, budget) : undefined
  const tooClose = pair ?? firstCrowded(draft, minimumMs, budget)
  if (tooClose !== undefined) refuse(`${formatWall(tooClose[0])} and ${formatWall(tooClose[1])}`)
}

function firstCrowded(draft: CadenceDraft, minimumMs: number, budget: StepBudget): readonly [Wall, Wall] | undefined {
  for (const wall of draft.added) {
    const before = draft.wallRule?.previous(wall, budget) ?? null
    if (before !== null && wall - before < minimumMs) return [before, wall]
    const after = draft.wallRule?.next(wall, budget) ?? null
    if (after !== null && after - wall < minimumMs) return [wall, after]
  }
  return undefined
}

/** The instant that ends the cadence, `maxRuns` counted out; undefined if it has no slot at all. */
function lastSlot(draft: CadenceDraft, { problems, budget }: ParseContext): number | undefined {
  const { source, from, to, maxRuns } = draft
  const first = source.next(from - 1, budget)
  if (first === null || first > to) return undefined
  if (maxRuns === null) return to
  try {
    return countedSlot(source, first, maxRuns, budget) ?? to
  } catch (error) {
    if (!(error instanceof StepsSpentError)) throw error
    problems.add(
      'too_complex',
      'maxRuns',
      'a number that is reached within some 30 years (endAt has no such limit)',
      `${maxRuns}`,
    )
    return to
  }
}

/** The slot with that number, the first being 1; null if there are fewer. */
function countedSlot(source: SlotSource, first: number, number: number, budget: StepBudget): number | null {
  let slot: number | null = first
  for (let counted = 1; counted < number && slot !== null; counted += 1) slot = source.next(slot, budget)
  return slot
}
