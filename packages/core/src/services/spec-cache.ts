import { parse, type Cadence } from '@carillon/cadence'
import { LRUCache } from 'lru-cache'

import { readPolicy } from '../policy/schedule-policy.ts'
import type { SlotCalendar, SlotsAsked, SlotsFound } from './slot-calendar.ts'

/** Instants between which slots are audited, both included. */
export interface AuditWindow {
  readonly from: number
  readonly to: number
  /** What came due later is still awaited: with a spread a slot comes due after its instant. @default `to` */
  readonly dueUntil?: number
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
  readonly #calendar: SlotCalendar | undefined
  readonly #slots = new LRUCache<string, WindowSlots>({
    maxSize: SLOTS_KEPT,
    sizeCalculation: ({ slots }) => slots.length + 1,
  })
  readonly #spreads = new LRUCache<string, number>({ max: POLICIES_KEPT })

  /**
   * @param slotsMax how many slots of one cadence are looked at
   * @param calendar for a long window, of which other windows have a part; @default slots are found for this window alone
   */
  constructor(window: AuditWindow, slotsMax: number, calendar?: SlotCalendar) {
    this.window = window
    this.#slotsMax = slotsMax
    this.#calendar = calendar
  }

  /**
   * The slots that a span of a schedule may await. Without a calendar, all slots of the window.
   * @throws Error if the cadence can no longer be read, SearchLimitError if its slots cannot be found
   */
  slots(cadenceText: string, span: AuditWindow): WindowSlots {
    const { from, to } = this.window
    if (this.#calendar !== undefined) {
      const asked = { from: Math.max(from, span.from), to: Math.min(to, span.to), limit: this.#slotsMax }
      return this.#toWindow(this.#calendar.find(cadenceText, asked), asked)
    }
    const known = this.#slots.get(cadenceText)
    if (known !== undefined) return known
    const asked = { from, to, limit: this.#slotsMax }
    const found = this.#toWindow(findSlots(readCadence(cadenceText), asked), asked)
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

  #toWindow({ slots, next }: SlotsFound, { from, to }: SlotsAsked): WindowSlots {
    const isComplete = next === null || next > to
    return { slots, until: isComplete ? this.window.to : (slots.at(-1) ?? from) }
  }
}

/** @throws Error if it can no longer be read */
export function readCadence(text: string): Cadence {
  const result = parse(JSON.parse(text), { minimumSeconds: 0 })
  if (!result.ok) throw new Error(`the cadence can no longer be read: ${result.problems[0]?.message ?? 'unknown'}`)
  return result.cadence
}

function findSlots(cadence: Cadence, { from, to, limit }: SlotsAsked): SlotsFound {
  const slots: number[] = []
  let next = cadence.next(from - 1)
  while (next !== null && next <= to && slots.length < limit) {
    slots.push(next)
    next = cadence.next(next)
  }
  return { slots, next }
}
