import { parse, type Cadence } from '@carillon/cadence'
import { LRUCache } from 'lru-cache'

import { readPolicy, type SchedulePolicy } from '../policy/schedule-policy.ts'

/** The slots of a schedule that are due, and the one after them. */
export interface DueSlots {
  readonly due: readonly number[]
  readonly next: number | null
}

interface Page {
  readonly cadence: Cadence
  /** The last question and its answer: a herd asks the same one thousands of times. */
  slot: number
  next: number | null
}

// Some 2 kB each.
const CADENCES_MAX = 20_000
const POLICIES_MAX = 1000
// Some 8 kB each at most: what one batch asks for, not what all of them did.
const BACKLOGS_MAX = 500

/**
 * What cadences say, remembered. Parsing one anew for each slot would cost more than everything else that begin
 * does in this process.
 */
export class SlotBook {
  readonly #pages = new LRUCache<string, Page>({ max: CADENCES_MAX })
  /** After an outage all schedules of a batch that share a cadence ask for the same slots, hundreds of them. */
  readonly #backlogs = new LRUCache<string, DueSlots>({ max: BACKLOGS_MAX })
  readonly #policies = new LRUCache<string, SchedulePolicy>({ max: POLICIES_MAX })

  /**
   * The slots from `first` on that are due at `until`, at most `limit` of them, and the one after.
   * @throws Error if the cadence can no longer be read, SearchLimitError if its next slot cannot be found
   */
  dueSlots(cadenceText: string, { first, until, limit }: { first: number; until: number; limit: number }): DueSlots {
    const page = this.#page(cadenceText)
    let next = nextOf(page, first)
    // By far the most common case, and not worth a key.
    if (next === null || next > until) return { due: [first], next }
    const key = `${first} ${until} ${limit} ${cadenceText}`
    const known = this.#backlogs.get(key)
    if (known !== undefined) return known
    const due = [first]
    while (next !== null && next <= until && due.length < limit) {
      due.push(next)
      next = nextOf(page, next)
    }
    const backlog = { due, next }
    this.#backlogs.set(key, backlog)
    return backlog
  }

  /** The last slot before an instant. */
  lastBefore(cadenceText: string, instant: number): number | null {
    return this.#page(cadenceText).cadence.previous(instant)
  }

  /** The first slot at or after an instant. */
  firstFrom(cadenceText: string, instant: number): number | null {
    return this.#page(cadenceText).cadence.next(instant - 1)
  }

  /** @throws Error if the policy can no longer be read */
  policy(policyText: string): SchedulePolicy {
    const known = this.#policies.get(policyText)
    if (known !== undefined) return known
    const policy = readPolicy(JSON.parse(policyText))
    this.#policies.set(policyText, policy)
    return policy
  }

  #page(cadenceText: string): Page {
    const known = this.#pages.get(cadenceText)
    if (known !== undefined) return known
    // What was accepted once is not refused for being too frequent now.
    const result = parse(JSON.parse(cadenceText), { minimumSeconds: 0 })
    if (!result.ok) throw new Error(`the cadence can no longer be read: ${result.problems[0]?.message ?? 'unknown'}`)
    const page: Page = { cadence: result.cadence, slot: Number.NaN, next: null }
    this.#pages.set(cadenceText, page)
    return page
  }
}

function nextOf(page: Page, slot: number): number | null {
  if (page.slot !== slot) {
    page.next = page.cadence.next(slot)
    page.slot = slot
  }
  return page.next
}
