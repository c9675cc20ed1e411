import { parse } from '@carillon/cadence'
import { LRUCache } from 'lru-cache'

import { readPolicy } from '../policy/schedule-policy.ts'

/** Instants between which slots are audited, both included. */
export interface AuditWindow {
  readonly from: number
  readonly to: number
}

/** The slots of a cadence in a window, ascending. */
export interface WindowSlots {
  readonly slots: readonly number[]
  /** Up to where they are all there: the end of the window, unless there were too many. */
  readonly until: number
}

// Eight bytes each.
const SLOTS_KEPT = 1_000_000
const POLICIES_KEPT = 1000

/** What specs say of one window. Cached, for many schedules share few specs, and reading one takes up to a millisecond. */
export class SpecCache {
  readonly window: AuditWindow
  readonly #slotsMax: number
  readonly #slots = new LRUCache<string, WindowSlots>({
    maxSize: SLOTS_KEPT,
    sizeCalculation: ({ slots }) => slots.length + 1,
  })
  readonly #spreads = new LRUCache<string, number>({ max: POLICIES_KEPT })

  /** @param slotsMax how many slots of one cadence are looked at */
  constructor(window: AuditWindow, slotsMax: number) {
    this.window = window
    this.#slotsMax = slotsMax
  }

  /** @throws Error if the cadence can no longer be read, SearchLimitError if its slots cannot be found */
  slots(cadenceText: string): WindowSlots {
    const known = this.#slots.get(cadenceText)
    if (known !== undefined) return known
    const found = this.#find(cadenceText)
    this.#slots.set(cadenceText, found)
    return found
  }

  /** @throws Error if the policy can no longer be read */
  spreadSeconds(policyText: string): number {
    const known = this.#spreads.get(policyText)
    if (known !== undefined) return known
    const { spreadSeconds } = readPolicy(JSON.parse(policyText))
    this.#spreads.set(policyText, spreadSeconds)
    return spreadSeconds
  }

  #find(cadenceText: string): WindowSlots {
    const { from, to } = this.window
    const result = parse(JSON.parse(cadenceText), { minimumSeconds: 0 })
    if (!result.ok) throw new Error(`the cadence can no longer be read: ${result.problems[0]?.message ?? 'unknown'}`)
    const slots: number[] = []
    let slot = result.cadence.next(from - 1)
    while (slot !== null && slot <= to && slots.length < this.#slotsMax) {
      slots.push(slot)
      slot = result.cadence.next(slot)
    }
    const isComplete = slot === null || slot > to
    return { slots, until: isComplete ? to : (slots.at(-1) ?? from) }
  }
}
