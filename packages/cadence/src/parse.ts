import { Cadence, SEARCH_STEPS } from './cadence.ts'
import { findTooClose, lastSlot } from './draft-checks.ts'
import { countOf } from './english/words.ts'
import { InputReader } from './input-reader.ts'
import { readCron } from './kinds/cron.ts'
import { readFrequency } from './kinds/frequency.ts'
import { readInterval } from './kinds/interval.ts'
import { readOnce } from './kinds/once.ts'
import { readRRule } from './kinds/rrule.ts'
import type { CadenceDraft, ParseContext } from './parse-context.ts'
import { ProblemList } from './problem.ts'
import type { Problem } from './problem.ts'
import { CADENCE_KINDS } from './spec.ts'
import type { CadenceKind } from './spec.ts'
import { SearchLimitError, StepBudget } from './step-budget.ts'
import { FIRST_INSTANT, LAST_INSTANT, SECOND_MS } from './wall.ts'

/** The least distance of two slots, unless told. */
export const MINIMUM_SECONDS_DEFAULT = 60

export interface ParseOptions {
  /** Epoch milliseconds; anchors what the input leaves open. Without it such input is a problem. */
  readonly now?: number
  /** The least distance of two slots; 0 to load what was accepted before. @default 60 */
  readonly minimumSeconds?: number
}

export type ParseResult =
  | { readonly ok: true; readonly cadence: Cadence }
  | { readonly ok: false; readonly problems: readonly Problem[] }

interface KindRules {
  readonly read: (context: ParseContext) => CadenceDraft | undefined
  readonly fields: readonly string[]
  /** The field to blame when the rule as a whole is at fault. */
  readonly ruleField: string
}

const RECURRING = ['kind', 'timezone', 'startAt', 'endAt', 'maxRuns', 'dst'] as const

const KINDS: Readonly<Record<CadenceKind, KindRules>> = {
  once: { read: readOnce, fields: ['kind', 'at', 'timezone', 'dst'], ruleField: 'at' },
  cron: { read: readCron, fields: [...RECURRING, 'expression'], ruleField: 'expression' },
  rrule: { read: readRRule, fields: [...RECURRING, 'rule', 'start', 'exdates', 'rdates'], ruleField: 'rule' },
  interval: { read: readInterval, fields: [...RECURRING, 'every', 'anchor'], ruleField: 'every' },
  frequency: {
    read: readFrequency,
    fields: [...RECURRING, 'frequency', 'dayOfWeek', 'timeOfDay', 'anchor'],
    ruleField: 'frequency',
  },
}

/**
 * Reads any value as a cadence. Never throws, whatever the input; always ends within a fixed number of steps.
 * @throws RangeError if the options are out of range: they are the program's, not the user's.
 */
export function parse(input: unknown, options: ParseOptions = {}): ParseResult {
  checkOptions(options)
  const problems = new ProblemList()
  const cadence = read(input, options, problems)
  if (cadence !== undefined && problems.isEmpty) return { ok: true, cadence }
  return { ok: false, problems: problems.toArray() }
}

function checkOptions({ now = FIRST_INSTANT, minimumSeconds = 0 }: ParseOptions): void {
  if (!(now >= FIRST_INSTANT && now <= LAST_INSTANT)) {
    throw new RangeError(`expected "now" in epoch milliseconds from 1970 to 9999, got ${now}`)
  }
  if (!(minimumSeconds >= 0)) throw new RangeError(`expected "minimumSeconds" to be 0 or more, got ${minimumSeconds}`)
}

function read(input: unknown, options: ParseOptions, problems: ProblemList): Cadence | undefined {
  const reader = InputReader.open(input, '', null, problems)
  if (reader === undefined) return undefined
  if (!reader.has('kind')) problems.add('missing_field', 'kind', `one of ${CADENCE_KINDS.join(', ')}`, 'nothing')
  const kind = reader.choice('kind', CADENCE_KINDS)
  if (kind === undefined) return undefined
  const rules = KINDS[kind]
  reader.refuseOthers(rules.fields)
  const context = {
    reader,
    problems,
    budget: new StepBudget(SEARCH_STEPS),
    now: options.now ?? null,
    chargedYears: new Set<number>(),
  }
  try {
    const draft = rules.read(context)
    return draft === undefined ? undefined : check(draft, options, context, rules.ruleField)
  } catch (error) {
    if (!(error instanceof SearchLimitError)) throw error
    const expected = 'a rule whose slots are found in a fixed number of steps'
    problems.add('too_complex', rules.ruleField, expected, 'one that takes more')
    return undefined
  }
}

/** What no single field can tell. */
function check(draft: CadenceDraft, options: ParseOptions, context: ParseContext, field: string): Cadence | undefined {
  const to = lastSlot(draft, context)
  if (to === undefined) {
    const hasSlots = draft.source.next(FIRST_INSTANT - 1, context.budget) !== null
    // A sound rule, but no slot between its bounds.
    const blamed = hasSlots && context.reader.has('endAt') ? 'endAt' : field
    context.problems.add('never_fires', blamed, 'at least one slot', 'none that ever comes due')
    return undefined
  }
  const minimumMs = (options.minimumSeconds ?? MINIMUM_SECONDS_DEFAULT) * SECOND_MS
  const close = findTooClose(draft, minimumMs, context.budget)
  if (close !== undefined) {
    context.problems.add(
      'too_frequent',
      field,
      `at least ${countOf(minimumMs / SECOND_MS, 'second')} between two slots`,
      close,
    )
  }
  return new Cadence(draft, to)
}
