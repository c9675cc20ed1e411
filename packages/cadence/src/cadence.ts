import { describeMoment } from './english/time-phrase.ts'
import type { CadenceDraft } from './input/cadence-draft.ts'
import { CADENCE_LIMITS } from './limits.ts'
import { SEARCH_STEPS, SearchLimitError, StepBudget } from './rules/step-budget.ts'
import type { CadenceKind, CadenceSpec } from './spec.ts'
import type { DstPolicy } from './time/dst-policy.ts'
import { formatZoned } from './time/moment-text.ts'
import { FIRST_INSTANT, FIRST_WALL_TIME, LAST_INSTANT, LAST_WALL_TIME } from './time/wall-time.ts'
import { findWarnings } from './warning.ts'
import type { Warning } from './warning.ts'

const SLOTS_STEPS = 4 * SEARCH_STEPS
const SLOTS_DEFAULT = 100

export interface SlotsOptions {
  /** Only slots before this instant are returned. @default no bound */
  readonly to?: number
  /** The most slots to return; above 10,000 it counts as 10,000. @default 100 */
  readonly limit?: number
}

/** A rule of time that `parse` accepted. Immutable. Instants are epoch milliseconds. */
export class Cadence {
  /** Canonical JSON. `parse(spec, { minimumSeconds: 0 })` returns the same cadence. */
  readonly spec: CadenceSpec
  readonly #draft: CadenceDraft
  /** First and last instant that may be a slot. */
  readonly #from: number
  readonly #to: number

  /** @internal `to` is the last instant that may be a slot, after `maxRuns` and all other bounds. */
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

  /** The DST policy in effect, defaults included; null for an instant or an elapsed interval, which DST does not affect. */
  get dst(): DstPolicy | null {
    return this.#draft.local?.dst ?? null
  }

  /** How many times its rule lists in memory, at most 86,400. A cache of cadences adds eight bytes for each to the size of an entry. */
  get listedTimes(): number {
    return this.#draft.listedTimes
  }

  /**
   * The first slot strictly after `after`, or null if there is none.
   * @throws SearchLimitError if the slots are too sparse to find the next one within the limit of search steps
   */
  next(after: number): number | null {
    return this.#next(floorInstant(after), new StepBudget(SEARCH_STEPS))
  }

  /**
   * The last slot strictly before `before`, or null if there is none.
   * @throws SearchLimitError like `next`
   */
  previous(before: number): number | null {
    const until = Math.min(ceilInstant(before), this.#to + 1)
    if (until <= this.#from) return null
    const slot = this.#draft.source.previous(until, new StepBudget(SEARCH_STEPS))
    return slot === null || slot < this.#from ? null : slot
  }

  /**
   * The slots in `[from, to)`, ascending. Returns fewer than `limit` if finding more would exceed the limit of search steps.
   * @throws SearchLimitError if the search exceeds that limit before it finds the first slot
   */
  slots(from: number, { to = Infinity, limit = SLOTS_DEFAULT }: SlotsOptions = {}): number[] {
    const slots: number[] = []
    const most = Math.min(limit, CADENCE_LIMITS.slotsPerCall)
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

  /** True if no slot lies after `after`. */
  isExhausted(after: number): boolean {
    return this.next(after) === null
  }

  /** The rule, its zone and its bounds in plain English. */
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
   * The DST changes in the two years after `from` that affect this cadence, and their effect.
   * @throws SearchLimitError like `next`
   */
  warnings(from: number): Warning[] {
    const { local, source, zone } = this.#draft
    if (local === null) return []
    const range = { from: Math.max(floorInstant(from), this.#from), to: this.#to }
    return findWarnings(local, source, zone, range, () => new StepBudget(SEARCH_STEPS))
  }

  /**
   * An instant as local time with offset and zone, in the format of RFC 9557.
   * @throws RangeError if the instant is not between 1970 and 9999
   */
  local(slot: number): string {
    const { zone } = this.#draft
    if (!(slot >= FIRST_WALL_TIME && slot <= LAST_WALL_TIME)) {
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

/** Limits an instant to the range of slots. Rejects NaN, which would make every comparison false and a search endless. */
function clamp(instant: number): number {
  if (Number.isNaN(instant)) throw new RangeError('expected an instant in epoch milliseconds, got NaN')
  return Math.min(Math.max(instant, FIRST_INSTANT - 1), LAST_INSTANT + 1)
}

function deepFreeze(spec: CadenceSpec): CadenceSpec {
  for (const value of Object.values(spec)) Object.freeze(value)
  return Object.freeze(spec)
}
