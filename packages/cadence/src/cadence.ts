import type { DstPolicy } from './dst-policy.ts'
import { describeMoment } from './english/moment-phrase.ts'
import { formatZoned } from './moment-text.ts'
import type { CadenceDraft } from './parse-context.ts'
import type { CadenceKind, CadenceSpec } from './spec.ts'
import { SearchLimitError, StepBudget } from './step-budget.ts'
import { FIRST_INSTANT, FIRST_WALL, LAST_INSTANT, LAST_WALL } from './wall.ts'
import { findWarnings } from './warning.ts'
import type { Warning } from './warning.ts'

/** What one search may cost. Changes of the clocks weigh most: it reaches over some decades of them. */
export const SEARCH_STEPS = 150_000

const SLOTS_STEPS = 4 * SEARCH_STEPS
const SLOTS_DEFAULT = 100
export const SLOTS_MAX = 10_000

export interface SlotsOptions {
  /** Exclusive. */
  readonly to?: number
  /** @default 100, at most 10,000 */
  readonly limit?: number
}

/** A rule of time, ready to answer. Instants are epoch milliseconds. Immutable; make one with `parse`. */
export class Cadence {
  /** Canonical JSON: `parse(spec, { minimumSeconds: 0 })` gives the same cadence again. */
  readonly spec: CadenceSpec
  readonly #draft: CadenceDraft
  /** First and last instant that may be a slot. */
  readonly #from: number
  readonly #to: number

  /** @internal `to` is where `maxRuns` and all other bounds end the draft. */
  constructor(draft: CadenceDraft, to: number) {
    this.spec = deepFreeze(draft.spec)
    this.#draft = draft
    this.#from = Math.max(draft.from, FIRST_INSTANT)
    this.#to = Math.min(to, LAST_INSTANT)
  }

  get kind(): CadenceKind {
    return this.spec.kind
  }

  /** Canonical IANA name. */
  get timezone(): string {
    return this.spec.timezone
  }

  /** The DST policy in force, given or by default; null where slots are instants and no clock matters. */
  get dst(): DstPolicy | null {
    return this.#draft.local?.dst ?? null
  }

  /**
   * The first slot strictly after, or null.
   * @throws SearchLimitError if the rule thins out so far that the next slot cannot be found
   */
  next(after: number): number | null {
    return this.#next(floorInstant(after), new StepBudget(SEARCH_STEPS))
  }

  /**
   * The last slot strictly before, or null.
   * @throws SearchLimitError as `next` does
   */
  previous(before: number): number | null {
    const until = Math.min(ceilInstant(before), this.#to + 1)
    if (until <= this.#from) return null
    const slot = this.#draft.source.previous(until, new StepBudget(SEARCH_STEPS))
    return slot === null || slot < this.#from ? null : slot
  }

  /** The slots in `[from, to)`, in order; fewer than asked for where finding them would take too long. */
  slots(from: number, { to = Infinity, limit = SLOTS_DEFAULT }: SlotsOptions = {}): number[] {
    const slots: number[] = []
    const most = Math.min(limit, SLOTS_MAX)
    const budget = new StepBudget(SLOTS_STEPS)
    try {
      let after = ceilInstant(from) - 1
      while (slots.length < most) {
        const slot = this.#next(after, budget)
        if (slot === null || slot >= to) break
        slots.push(slot)
        after = slot
      }
    } catch (error) {
      if (!(error instanceof SearchLimitError) || slots.length === 0) throw error
    }
    return slots
  }

  /** Whether no slot follows. */
  isExhausted(after: number): boolean {
    return this.next(after) === null
  }

  /** The rule in plain English, with its zone and bounds. */
  describe(): string {
    const { phrase, spec, zone, from, to } = this.#draft
    const moment = (at: number): string => describeMoment({ kind: 'instant', at }, zone)
    if (spec.kind === 'once') return `${phrase()}, in ${spec.timezone}`
    const { startAt, endAt, maxRuns } = spec
    return [
      `${phrase()}, in ${spec.timezone}`,
      ...(startAt === undefined ? [] : [`from ${moment(from)}`]),
      ...(endAt === undefined ? [] : [`until ${moment(to)}`]),
      ...(maxRuns === undefined ? [] : [maxRuns === 1 ? 'once at most' : `${maxRuns} times at most`]),
    ].join(', ')
  }

  /**
   * The dates in the two years from `from` on that a change of the clocks touches, and how.
   * @throws SearchLimitError as `next` does
   */
  warnings(from: number): Warning[] {
    const { local, source, zone } = this.#draft
    if (local === null) return []
    const range = { from: Math.max(floorInstant(from), this.#from), to: this.#to }
    return findWarnings(local, source, zone, range, () => new StepBudget(SEARCH_STEPS))
  }

  /**
   * An instant as local time with offset and zone, as in RFC 9557.
   * @throws RangeError if the instant lies outside of 1970 to 9999
   */
  local(slot: number): string {
    const { zone } = this.#draft
    if (!(slot >= FIRST_WALL && slot <= LAST_WALL)) {
      throw new RangeError(`expected an instant from 1970 to 9999, got ${slot}`)
    }
    const instant = Math.floor(slot)
    return formatZoned(instant, zone.offsetAt(instant), zone.name)
  }

  #next(after: number, budget: StepBudget): number | null {
    const from = Math.max(after, this.#from - 1)
    if (from >= this.#to) return null
    const slot = this.#draft.source.next(from, budget)
    return slot === null || slot > this.#to ? null : slot
  }
}

function floorInstant(instant: number): number {
  return Math.floor(clamp(instant))
}

function ceilInstant(instant: number): number {
  return Math.ceil(clamp(instant))
}

/** To the range of slots. NaN would make every comparison false and a search endless. */
function clamp(instant: number): number {
  if (Number.isNaN(instant)) throw new RangeError('expected an instant in epoch milliseconds, got NaN')
  return Math.min(Math.max(instant, FIRST_INSTANT - 1), LAST_INSTANT + 1)
}

function deepFreeze(spec: CadenceSpec): CadenceSpec {
  for (const value of Object.values(spec)) Object.freeze(value)
  return Object.freeze(spec)
}
