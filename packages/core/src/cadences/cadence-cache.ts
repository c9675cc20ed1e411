import { parse, SearchLimitError, type Cadence, type CadenceSpec } from '@carillon/cadence'
import { LRUCache } from 'lru-cache'

import { CarillonError, invalidInput, type Problem } from '../kernel/errors.ts'
import { readPolicy, resolvePolicy, type PolicyDefaults, type SchedulePolicy } from '../policy/schedule-policy.ts'
import { spreadOffsetMs } from '../policy/spread.ts'

/** The slots of a schedule that are due, and the slot after them. */
export interface DueSlots {
  readonly due: readonly number[]
  readonly next: number | null
}

/** When a schedule comes due next: its slot plus its share of the spread. Both are null if no slot follows. */
export interface NextDue {
  readonly nextSlotAt: number | null
  readonly dueAt: number | null
}

/** Of a schedule that has no further slot. */
export const NOT_DUE: NextDue = { nextSlotAt: null, dueAt: null }

/** Slots in ascending order, and the slot that follows them; null if none follows. */
export interface FoundSlots {
  readonly slots: readonly number[]
  readonly next: number | null
}

export type CadenceResult =
  | { readonly ok: true; readonly cadence: ParsedCadence }
  | { readonly ok: false; readonly problems: Problem[] }

export type PolicyInputResult =
  | { readonly ok: true; readonly policy: ParsedPolicy }
  | { readonly ok: false; readonly problems: Problem[] }

/** A policy and its JSON. Many schedules share one, so its JSON is written once. */
export interface ParsedPolicy {
  readonly policy: SchedulePolicy
  readonly json: string
}

/** How many stored cadences, and how many inputs, are kept parsed. */
const CADENCES_MAX = 20_000
const INPUTS_MAX = 5000
/** How many bytes they may hold: a rule that lists every second of a day holds two hundred times as much as a simple one. */
const CADENCES_MAX_BYTES = 64 * 2 ** 20
const INPUTS_MAX_BYTES = 16 * 2 ** 20
/** About what a parsed cadence holds besides its JSON and the times that it lists. */
const CADENCE_BYTES = 3000
/** How many parsed policies are kept, in each of two caches. */
const POLICIES_MAX = 1000
/** How many bytes the kept lists of due slots may hold. The schedules of one batch share a few of them. */
const DUE_SLOTS_MAX_BYTES = 4 * 2 ** 20
/** An input whose JSON has more characters, or that is nested deeper, is parsed every time: two schedules rarely share one. */
const INPUT_KEY_MAX_LENGTH = 2000
const INPUT_DEPTH_MAX = 5
/**
 * `slotsBetween` computes and keeps slots by spans of half an hour. Nothing else runs in this process while it computes a span, so
 * spans are short: even a cadence of one second has few slots in one.
 */
const SPAN_MS = 1_800_000
/** How many bytes all kept spans may hold. */
const SPANS_MAX_BYTES = 8 * 2 ** 20
/** About what a list of slots holds besides its slots and its key. */
const LIST_BYTES = 240

/** A cadence that was parsed, its JSON, and the last slot that was searched for. */
export class ParsedCadence {
  readonly rule: Cadence
  readonly json: string
  #after = Number.NaN
  #next: number | null = null

  constructor(rule: Cadence, json: string) {
    this.rule = rule
    this.json = json
  }

  /**
   * The first slot after an instant; null if there is none. The last answer also holds for every instant between the one that was
   * asked about and the slot that was found. So thousands of schedules that share a cadence and come due together, or are imported
   * together, cost one search (`npm run bench:cadence` measures what a search costs).
   * @throws SearchLimitError if the slot cannot be found
   */
  next(after: number): number | null {
    const isKnown = this.#after <= after && (this.#next === null || after < this.#next)
    if (!isKnown) {
      this.#next = this.rule.next(after)
      this.#after = after
    }
    return this.#next
  }
}

/**
 * The one reader of cadences and policies, both as they are stored and as callers send them. Most schedules share a few of them,
 * and to parse a cadence takes longer than all other work on a slot or an input in this process. Every cache here is bounded.
 *
 * The key of a stored cadence or policy is its JSON text.
 */
export class CadenceCache {
  readonly #cadences: LRUCache<string, ParsedCadence>
  /** Cadences that callers send have a cache of their own, so they cannot evict the stored ones. */
  readonly #inputs = newCadenceCache(INPUTS_MAX, INPUTS_MAX_BYTES)
  readonly #policies = new LRUCache<string, SchedulePolicy>({ max: POLICIES_MAX })
  readonly #policyInputs = new LRUCache<string, ParsedPolicy>({ max: POLICIES_MAX })
  /** After an outage, schedules of a batch that share a cadence have the same hundreds of due slots. */
  readonly #dueSlots = new LRUCache<string, DueSlots>({
    maxSize: DUE_SLOTS_MAX_BYTES,
    sizeCalculation: ({ due }, key) => bytesOf(due, key),
  })
  /** An audit walks through the same hours for many schedules. */
  readonly #spans = new LRUCache<string, FoundSlots>({
    maxSize: SPANS_MAX_BYTES,
    sizeCalculation: ({ slots }, key) => bytesOf(slots, key),
  })

  constructor({ cadencesMax = CADENCES_MAX }: { cadencesMax?: number } = {}) {
    this.#cadences = newCadenceCache(cadencesMax, CADENCES_MAX_BYTES)
  }

  /** @throws CarillonError `invalid_input` if this version cannot read the stored cadence */
  read(json: string): ParsedCadence {
    const known = this.#cadences.get(json)
    if (known !== undefined) return known
    const parsed = new ParsedCadence(readCadence(JSON.parse(json)), json)
    this.#cadences.set(json, parsed)
    return parsed
  }

  /**
   * The slots from `first` on that are due at `until`, at most `limit` of them, and the slot after them. `first` counts as a slot.
   * @throws CarillonError as `read` does, SearchLimitError if a slot cannot be found
   */
  dueSlots(json: string, { first, until, limit }: { first: number; until: number; limit: number }): DueSlots {
    const cadence = this.read(json)
    let next = cadence.next(first)
    // The usual case, one due slot: it is not cached, so no key has to be built.
    if (next === null || next > until) return { due: [first], next }
    const key = `${first} ${until} ${limit} ${json}`
    const known = this.#dueSlots.get(key)
    if (known !== undefined) return known
    const due = [first]
    while (next !== null && next <= until && due.length < limit) {
      due.push(next)
      next = cadence.next(next)
    }
    const slots = { due, next }
    this.#dueSlots.set(key, slots)
    return slots
  }

  /** The last slot before an instant. */
  lastBefore(json: string, instant: number): number | null {
    return this.read(json).rule.previous(instant)
  }

  /** The first slot at or after an instant. */
  firstFrom(json: string, instant: number): number | null {
    return this.read(json).next(instant - 1)
  }

  /**
   * The slots from `from` to `to`, both included, at most `limit` of them. Computes and keeps spans of half an hour; spans
   * without a slot are skipped.
   * @throws CarillonError as `read` does, SearchLimitError if a slot cannot be found
   */
  slotsBetween(json: string, { from, to, limit }: { from: number; to: number; limit: number }): FoundSlots {
    const slots: number[] = []
    let at: number | null = from
    while (at !== null && at <= to) {
      const span = this.#span(json, Math.floor(at / SPAN_MS))
      for (const slot of span.slots) {
        if (slot < at) continue
        if (slot > to || slots.length >= limit) return { slots, next: slot }
        slots.push(slot)
      }
      at = span.next
    }
    return { slots, next: at }
  }

  /** @throws Error if this version cannot read the stored policy */
  policy(json: string): SchedulePolicy {
    const known = this.#policies.get(json)
    if (known !== undefined) return known
    const policy = readPolicy(JSON.parse(json))
    this.#policies.set(json, policy)
    return policy
  }

  /** Parses a caller's cadence. A refused one is parsed every time, and so is one that starts now: it depends on the instant. */
  parseInput(input: unknown, { now, minimumSeconds }: { now: number; minimumSeconds: number }): CadenceResult {
    const text = keyTextOf(input)
    const key = text === undefined ? undefined : `${minimumSeconds} ${text}`
    const known = key === undefined ? undefined : this.#inputs.get(key)
    if (known !== undefined) return { ok: true, cadence: known }
    // A cadence that is accepted without `now` means the same at every instant. If a field is missing, `now` may supply it.
    const timeless = text === undefined ? undefined : parse(JSON.parse(text), { minimumSeconds })
    const isTimeless = timeless?.ok === true
    const mayNeedNow = timeless?.ok === false && timeless.problems.some(({ code }) => code === 'missing_field')
    const result = timeless === undefined || mayNeedNow ? parse(input, { now, minimumSeconds }) : timeless
    if (!result.ok) return { ok: false, problems: toProblems(result.problems) }
    const parsed = new ParsedCadence(result.cadence, JSON.stringify(result.cadence.spec))
    if (isTimeless && key !== undefined) this.#inputs.set(key, parsed)
    return { ok: true, cadence: parsed }
  }

  /** Fills in what a caller's policy leaves out. A refused one is read every time. */
  parsePolicyInput(input: unknown, defaults: PolicyDefaults): PolicyInputResult {
    const text = input === undefined ? '' : keyTextOf(input)
    const key = text === undefined ? undefined : `${JSON.stringify(defaults)} ${text}`
    const known = key === undefined ? undefined : this.#policyInputs.get(key)
    if (known !== undefined) return { ok: true, policy: known }
    const result = resolvePolicy(input, defaults)
    if (!result.ok) return { ok: false, problems: [...result.problems] }
    const parsed = { policy: result.policy, json: JSON.stringify(result.policy) }
    if (key !== undefined) this.#policyInputs.set(key, parsed)
    return { ok: true, policy: parsed }
  }

  #span(json: string, number: number): FoundSlots {
    const key = `${number} ${json}`
    const known = this.#spans.get(key)
    if (known !== undefined) return known
    const { rule } = this.read(json)
    const slots: number[] = []
    let next = rule.next(number * SPAN_MS - 1)
    while (next !== null && next < (number + 1) * SPAN_MS) {
      slots.push(next)
      next = rule.next(next)
    }
    const span = { slots, next }
    this.#spans.set(key, span)
    return span
  }
}

/**
 * Reads a stored cadence. It was accepted when it was stored, so a minimum interval that is set today does not refuse it.
 * @throws CarillonError `invalid_input` if this version cannot read it
 */
export function readCadence(spec: unknown): Cadence {
  const result = parse(spec, { minimumSeconds: 0 })
  if (result.ok) return result.cadence
  const problems = toProblems(result.problems)
  const message = `the cadence can no longer be read: ${problems[0]?.message ?? 'unknown'}`
  throw new CarillonError('invalid_input', message, { problems })
}

/** A stored cadence in plain English. One that this version cannot read gets a sentence too: it must not fail a whole list. */
export function describeCadence(spec: CadenceSpec): string {
  const result = parse(spec, { minimumSeconds: 0 })
  return result.ok ? result.cadence.describe() : 'A cadence that this version cannot read'
}

/**
 * Searches a cadence for slots. A rule may be accepted and become too sparse to search years later.
 * @param path the argument to name in the error
 * @throws CarillonError `invalid_input` if the search takes too long
 */
export function searchSlots<Result>(path: string, search: () => Result): Result {
  try {
    return search()
  } catch (error) {
    if (!(error instanceof SearchLimitError)) throw error
    const message =
      'expected a cadence whose next slot can be found, got one whose later slots are too sparse to search'
    throw invalidInput([{ path, message: `${message}: simplify it, or ask for an earlier time` }])
  }
}

/**
 * When a schedule comes due after an instant.
 * @throws CarillonError `invalid_input` if the cadence is too sparse to search
 */
export function nextDueAfter(
  cadence: ParsedCadence,
  after: number,
  schedule: { readonly id: string; readonly spreadSeconds: number },
): NextDue {
  return dueOf(
    searchSlots('cadence', () => cadence.next(after)),
    schedule,
  )
}

/** When a schedule comes due for a slot. */
export function dueOf(
  nextSlotAt: number | null,
  { id, spreadSeconds }: { readonly id: string; readonly spreadSeconds: number },
): NextDue {
  return { nextSlotAt, dueAt: nextSlotAt === null ? null : nextSlotAt + spreadOffsetMs(id, spreadSeconds) }
}

/** The error for a new cadence whose slots are all in the past. */
export function noSlotAhead(): CarillonError {
  return invalidInput([
    { path: 'cadence', message: 'expected a cadence with a slot in the future, got one whose slots are all past' },
  ])
}

function toProblems(problems: readonly { readonly field: string; readonly message: string }[]): Problem[] {
  return problems.map(({ field, message }) => ({ path: field === '' ? 'cadence' : `cadence.${field}`, message }))
}

function newCadenceCache(max: number, maxSize: number): LRUCache<string, ParsedCadence> {
  return new LRUCache({
    max,
    maxSize,
    // At two bytes a character, the JSON of a rule with exceptions counts for their dates as well.
    sizeCalculation: ({ rule, json }, key) => CADENCE_BYTES + 8 * rule.listedTimes + 2 * (json.length + key.length),
  })
}

function bytesOf(slots: readonly number[], key: string): number {
  return LIST_BYTES + 8 * slots.length + 2 * key.length
}

/** An input as JSON, to be a cache key; undefined if it is too long, or if JSON would lose a part, so that two inputs share one text. */
function keyTextOf(input: unknown): string | undefined {
  if (!isPlainData(input, INPUT_DEPTH_MAX)) return undefined
  const text = JSON.stringify(input)
  return text.length > INPUT_KEY_MAX_LENGTH ? undefined : text
}

function isPlainData(value: unknown, depth: number): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value) && !Object.is(value, -0)
  if (typeof value !== 'object' || depth === 0) return false
  if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype) return false
  return Object.values(value).every((part) => isPlainData(part, depth - 1))
}
