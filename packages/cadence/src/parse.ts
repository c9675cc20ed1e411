import { Cadence } from './cadence.ts'
import { checkDraft } from './check-draft.ts'
import type { CadenceDraft } from './input/cadence-draft.ts'
import { InputReader } from './input/input-reader.ts'
import type { ParseContext } from './input/parse-context.ts'
import { ProblemList } from './input/problem.ts'
import type { Problem } from './input/problem.ts'
import { parseCronCadence } from './kinds/cron.ts'
import { parseFrequencyCadence } from './kinds/frequency.ts'
import { parseIntervalCadence } from './kinds/interval.ts'
import { parseOnceCadence } from './kinds/once.ts'
import { parseRRuleCadence } from './kinds/rrule.ts'
import { CADENCE_LIMITS } from './limits.ts'
import { SEARCH_STEPS, SearchLimitError, StepBudget } from './rules/step-budget.ts'
import { CADENCE_KINDS } from './spec.ts'
import type { CadenceKind } from './spec.ts'
import { FIRST_INSTANT, LAST_INSTANT, SECOND_MS } from './time/wall-time.ts'

export interface ParseOptions {
  /** Epoch milliseconds. An input that names no start counts its slots from here. Without `now`, `parse` rejects such an input. */
  readonly now?: number
  /** The least distance between two slots. Use 0 to load a stored spec that `parse` accepted earlier. @default 60 */
  readonly minimumSeconds?: number
}

export type ParseResult =
  | { readonly ok: true; readonly cadence: Cadence }
  | { readonly ok: false; readonly problems: readonly Problem[] }

interface KindRules {
  readonly read: (context: ParseContext) => CadenceDraft | undefined
  readonly fields: readonly string[]
  /** The field that a problem names if the rule as a whole is at fault. */
  readonly ruleField: string
}

const RECURRING = ['kind', 'timezone', 'startAt', 'endAt', 'maxRuns', 'dst'] as const

const KINDS: Readonly<Record<CadenceKind, KindRules>> = {
  once: { read: parseOnceCadence, fields: ['kind', 'at', 'timezone', 'dst'], ruleField: 'at' },
  cron: { read: parseCronCadence, fields: [...RECURRING, 'expression'], ruleField: 'expression' },
  rrule: { read: parseRRuleCadence, fields: [...RECURRING, 'rule', 'start', 'exdates', 'rdates'], ruleField: 'rule' },
  interval: { read: parseIntervalCadence, fields: [...RECURRING, 'every', 'anchor'], ruleField: 'every' },
  frequency: {
    read: parseFrequencyCadence,
    fields: [...RECURRING, 'frequency', 'dayOfWeek', 'timeOfDay', 'anchor'],
    ruleField: 'frequency',
  },
}

/**
 * Reads any value as a cadence. Never throws because of the input, and always ends within a fixed number of steps.
 * @throws RangeError if an option is out of range: the program sets the options, not the user
 */
export function parse(input: unknown, options: ParseOptions = {}): ParseResult {
  checkOptions(options)
  const problems = new ProblemList()
  const cadence = readCadence(input, options, problems)
  if (cadence !== undefined && problems.isEmpty) return { ok: true, cadence }
  return { ok: false, problems: problems.toArray() }
}

function checkOptions({ now = FIRST_INSTANT, minimumSeconds = 0 }: ParseOptions): void {
  if (!(now >= FIRST_INSTANT && now <= LAST_INSTANT)) {
    throw new RangeError(`expected "now" in epoch milliseconds from 1970 to 9999, got ${now}`)
  }
  if (!(minimumSeconds >= 0)) throw new RangeError(`expected "minimumSeconds" to be 0 or more, got ${minimumSeconds}`)
}

function readCadence(input: unknown, options: ParseOptions, problems: ProblemList): Cadence | undefined {
  const reader = InputReader.open(input, '', null, problems)
  if (reader === undefined) return undefined
  if (!reader.has('kind')) problems.add('missing_field', 'kind', `one of ${CADENCE_KINDS.join(', ')}`, 'nothing')
  const kind = reader.choice('kind', CADENCE_KINDS)
  if (kind === undefined) return undefined
  const { read, fields, ruleField } = KINDS[kind]
  reader.rejectUnknownFields(fields)
  const budget = new StepBudget(SEARCH_STEPS)
  const context = { reader, problems, budget, now: options.now ?? null, chargedYears: new Set<number>() }
  const minimumMs = (options.minimumSeconds ?? CADENCE_LIMITS.minimumSeconds) * SECOND_MS
  try {
    const draft = read(context)
    const last = draft && checkDraft(draft, context, minimumMs, ruleField)
    return draft === undefined || last === undefined ? undefined : new Cadence(draft, last)
  } catch (error) {
    if (!(error instanceof SearchLimitError)) throw error
    const expected = 'a rule whose slots are found in a fixed number of steps'
    problems.add('too_complex', ruleField, expected, 'one that takes more')
    return undefined
  }
}
