import type { Cadence } from '@carillon/cadence'
import { LRUCache } from 'lru-cache'

/** The slots of one cadence in half an hour, ascending, and the first one after them; null if none follows. */
interface Portion {
  readonly slots: readonly number[]
  readonly next: number | null
}

/** Which slots are asked for: between two instants, both included, at most so many. */
export interface SlotsAsked {
  readonly from: number
  readonly to: number
  readonly limit: number
}

/** Slots, ascending, and the one that follows; null if none does. */
export interface SlotsFound {
  readonly slots: readonly number[]
  readonly next: number | null
}

/** So short that a cadence of one second has few slots in it: the process does nothing else while they are computed. */
const PORTION_MS = 1_800_000
/** Eight bytes for each slot, and as much as thirty of them for each portion. */
const SLOTS_KEPT = 1_000_000
const PORTION_SIZE = 30
const CADENCES_KEPT = 1000

/**
 * The slots of cadences, kept in portions of half an hour: an audit of months goes through the same hours for many schedules, and many
 * schedules share few cadences. Portions without a slot are skipped.
 */
export class SlotCalendar {
  readonly #read: (cadenceText: string) => Cadence
  readonly #cadences = new LRUCache<string, Cadence>({ max: CADENCES_KEPT })
  readonly #portions = new LRUCache<string, Portion>({
    maxSize: SLOTS_KEPT,
    sizeCalculation: ({ slots }) => slots.length + PORTION_SIZE,
  })

  /** @param read throws if the cadence can no longer be read */
  constructor(read: (cadenceText: string) => Cadence) {
    this.#read = read
  }

  /** @throws Error if the cadence can no longer be read, SearchLimitError if its slots cannot be found */
  find(cadenceText: string, { from, to, limit }: SlotsAsked): SlotsFound {
    const slots: number[] = []
    let at: number | null = from
    while (at !== null && at <= to) {
      const portion = this.#portion(cadenceText, Math.floor(at / PORTION_MS))
      for (const slot of portion.slots) {
        if (slot < at) continue
        if (slot > to || slots.length >= limit) return { slots, next: slot }
        slots.push(slot)
      }
      at = portion.next
    }
    return { slots, next: at }
  }

  #portion(cadenceText: string, number: number): Portion {
    const key = `${number} ${cadenceText}`
    const known = this.#portions.get(key)
    if (known !== undefined) return known
    const cadence = this.#cadence(cadenceText)
    const slots: number[] = []
    let next = cadence.next(number * PORTION_MS - 1)
    while (next !== null && next < (number + 1) * PORTION_MS) {
      slots.push(next)
      next = cadence.next(next)
    }
    const portion = { slots, next }
    this.#portions.set(key, portion)
    return portion
  }

  #cadence(text: string): Cadence {
    const known = this.#cadences.get(text)
    if (known !== undefined) return known
    const cadence = this.#read(text)
    this.#cadences.set(text, cadence)
    return cadence
  }
}
