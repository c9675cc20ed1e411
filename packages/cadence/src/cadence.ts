import type { DstPolicy } from './dst-policy.ts'
import { formatZoned } from './moment-text.ts'
import type { CadenceDraft } from './parse-context.ts'
import type { CadenceKind, CadenceSpec } from './spec.ts'
import { StepBudget, StepsSpentError } from './step-budget.ts'
import { FIRST_WALL, LAST_WALL } from './wall.ts'
import { findWarnings } from './warning.ts'
import type { Warning } from './warning.ts'

/** What one search may cost: some 10 ms, or 30 years of changes of the clocks. */
export const SEARCH_STEPS = 250_000

const SLOTS_DEFAULT = 100
const SLOTS_MAX = 10_000

export interface SlotsOptions {
  /** Exclusive. */
  readonly to?: number
  /** @default 100, at most 10,000 */
  readonly limit?: number
}

/** A rule of time, ready to answer. Instants are epoch milliseconds. Immutable; make one with `parse`. */
export class Cadence {
  /** Canonical JSON: `parse(spec)` gives the same cadence again. */
  readonly spec: CadenceSpec
  /** The DST policy in force, given or by default. */
  readonly dst: DstPolicy
  readonly #draft: CadenceDraft
  /** First and last instant that may be a slot. */
  readonly #from: number
  readonly #to: number

  /** @internal `to` is where `maxRuns` and all other bounds end the draft. */
  constructor(draft: CadenceDraft, to: number) {
    this.spec = draft.spec
    this.dst = draft.dst
    this.#draft = draft
    this.#from = draft.from
    this.#to = to
  }

  get kind(): CadenceKind {
    return this.spec.kind
  }

  /** Canonical IANA name. */
  get timezone(): string {
    return this.spec.timezone
  }

  /** The first slot strictly after, or null. */
  next(after: number): number | null {
    const from = Math.max(checkInstant(after), this.#from - 1)
    if (from >= this.#to) return null
    const slot = search((budget) => this.#draft.source.next(from, budget))
    return slot === null || slot > this.#to ? null : slot
  }

  /** The last slot strictly before, or null. */
  previous(before: number): number | null {
    const until = Math.min(checkInstant(before), this.#to + 1)
    if (until <= this.#from) return null
    const slot = search((budget) => this.#draft.source.previous(until, budget))
    return slot === null || slot < this.#from ? null : slot
  }

  /** The slots in `[from, to)`, in order. */
  slots(from: number, { to = Infinity, limit = SLOTS_DEFAULT }: SlotsOptions = {}): number[] {
    const slots: number[] = []
    const most = Math.min(limit, SLOTS_MAX)
    let slot = this.next(from - 1)
    while (slot !== null && slot < to && slots.length < most) {
      slots.push(slot)
      slot = this.next(slot)
    }
    return slots
  }

  /** Whether no slot follows. */
  isExhausted(after: number): boolean {
    return this.next(after) === null
  }

  /** The rule in plain English, with its zone and bounds. */
  describe(): string {
    const { phrase, spec } = this.#draft
    if (spec.kind === 'once') return `${phrase()}, at ${this.local(this.#firstSlot())}`
    const { startAt, endAt, maxRuns } = spec
    return [
      `${phrase()}, in ${spec.timezone}`,
      ...(startAt === undefined ? [] : [`from ${startAt}`]),
      ...(endAt === undefined ? [] : [`until ${endAt}`]),
      ...(maxRuns === undefined ? [] : [maxRuns === 1 ? 'once at most' : `${maxRuns} times at most`]),
    ].join(', ')
  }

  /** The dates in the two years from `from` on that a change of the clocks touches, and how. */
  warnings(from: number): Warning[] {
    const { wallRule, zone } = this.#draft
    if (wallRule === null) return []
    const range = { from: Math.max(checkInstant(from), this.#from), to: this.#to }
    const budget = new StepBudget(SEARCH_STEPS)
    return orIfSpent(() => findWarnings(wallRule, zone, this.dst, range, budget), [])
  }

  /** An instant as local time with offset and zone, as in RFC 9557. */
  local(slot: number): string {
    const { zone } = this.#draft
    return formatZoned(slot, zone.offsetAt(slot), zone.name)
  }

  #firstSlot(): number {
    return this.next(this.#from - 1) ?? this.#from
  }
}

/** NaN would make every comparison false and a search endless. */
function checkInstant(instant: number): number {
  if (Number.isNaN(instant)) throw new RangeError('expected an instant in epoch milliseconds, got NaN')
  return Math.min(Math.max(instant, FIRST_WALL - 1), LAST_WALL + 1)
}

function search(find: (budget: StepBudget) => number | null): number | null {
  return orIfSpent(() => find(new StepBudget(SEARCH_STEPS)), null)
}

/** A slot that takes more steps to find does not exist: a stated limit, the same on every machine. */
function orIfSpent<Result>(compute: () => Result, fallback: Result): Result {
  try {
    return compute()
  } catch (error) {
    if (error instanceof StepsSpentError) return fallback
    throw error
  }
}
