import { setTimeout as sleep } from 'node:timers/promises'

import type { SeededRandom } from './seeded-random.ts'

/**
 * When a connection breaks, seen from one statement: before Postgres hears it, while Postgres works on it, after Postgres has
 * answered and before the client hears the answer. `silence` drops the answer and leaves the connection half-open.
 */
export type Moment = 'before' | 'during' | 'after' | 'silence'

export const CUT_MOMENTS: readonly Moment[] = ['before', 'during', 'after']

interface FaultPlanOptions {
  readonly moments: readonly Moment[]
  /** The minimum time between two faults, so that workers make progress in between. A rare statement waits a quarter of it. */
  readonly gapMs: number
  /** How many connections may be silent at a time. */
  readonly openMax: number
  readonly random: SeededRandom
  readonly now: () => number
}

interface Row {
  readonly label: string
  /** How often workers sent it. */
  sent: number
  /** Sent in the warm-up, before any fault. */
  readonly isLearned: boolean
  readonly faults: Map<Moment, number>
  /** Chosen, and not over. */
  readonly planned: Map<Moment, number>
}

/** `each`: what has not been cut yet. `again`: anything, and most likely what was cut least. */
type Aim = 'nothing' | 'each' | 'again'

/** A statement that was sent less often than this need not have been cut at every moment, unless the warm-up saw it. */
const SELDOM = 6
/** A statement that was sent more often will soon be sent again. */
const OFTEN = 100
const AGAIN_CHANCE = 0.3
const LOOK_EVERY_MS = 250

/** Decides which statement is cut at which moment, and keeps the table of what was. */
export class FaultPlan {
  readonly moments: readonly Moment[]
  readonly #options: FaultPlanOptions
  readonly #rows = new Map<string, Row>()
  #aim: Aim = 'nothing'
  #isLearning = true
  #open = 0
  #chosenAt = 0
  #total = 0
  #lastAt = 0

  constructor(options: FaultPlanOptions) {
    this.#options = options
    this.moments = options.moments
  }

  get total(): number {
    return this.#total
  }

  /** When the last fault happened, epoch milliseconds. */
  get lastAt(): number {
    return this.#lastAt
  }

  /** At first the plan aims at nothing and only learns which statements there are. */
  aimAt(aim: Aim): void {
    this.#aim = aim
    this.#isLearning = false
  }

  /** Forgets what it learned: statements that only the first worker on an empty database sends cannot be cut three times. */
  forget(): void {
    this.#rows.clear()
  }

  /** Called for each statement, in the order in which clients send them. */
  choose(label: string): Moment | undefined {
    const row = this.#rowOf(label)
    row.sent += 1
    const { gapMs, openMax, random, now } = this.#options
    const sinceLast = now() - this.#chosenAt
    const leastMs = row.sent < OFTEN ? gapMs / 4 : gapMs
    if (this.#aim === 'nothing' || sinceLast < leastMs || this.#open >= openMax) return undefined
    const moment = this.#wantedMoment(row, random)
    if (moment === undefined) return undefined
    row.planned.set(moment, (row.planned.get(moment) ?? 0) + 1)
    this.#open += 1
    this.#chosenAt = now()
    return moment
  }

  /** The fault that was chosen has happened. */
  happened(label: string, moment: Moment): void {
    const { faults } = this.#rowOf(label)
    faults.set(moment, (faults.get(moment) ?? 0) + 1)
    this.#total += 1
    this.noteFault()
  }

  /** The end of a silence is not counted as a fault of its own, but what waits is measured from it. */
  noteFault(): void {
    this.#lastAt = this.#options.now()
  }

  /** It has passed, or the connection ended before it could happen. */
  over(label: string, moment: Moment): void {
    const { planned } = this.#rowOf(label)
    planned.set(moment, (planned.get(moment) ?? 0) - 1)
    this.#open -= 1
  }

  /** Resolves once no fault is under way, or after the limit. */
  async untilOver(limitMs: number): Promise<void> {
    const endsAt = this.#options.now() + limitMs
    while (this.#open > 0 && this.#options.now() < endsAt) await sleep(LOOK_EVERY_MS)
  }

  /** In the order in which statements were first sent. */
  get rows(): readonly { label: string; sent: number; isRequired: boolean; counts: readonly number[] }[] {
    return [...this.#rows.values()].map((row) => ({
      label: row.label,
      sent: row.sent,
      isRequired: row.isLearned || row.sent >= SELDOM,
      counts: this.moments.map((moment) => row.faults.get(moment) ?? 0),
    }))
  }

  /** Required statements and moments that have not been cut. */
  get missing(): string[] {
    return this.rows.flatMap(({ label, isRequired, counts }) =>
      isRequired ? this.moments.filter((_, place) => counts[place] === 0).map((moment) => `${moment} ${label}`) : [],
    )
  }

  #rowOf(label: string): Row {
    const known = this.#rows.get(label)
    if (known !== undefined) return known
    const row = { label, sent: 0, isLearned: this.#isLearning, faults: new Map(), planned: new Map() }
    this.#rows.set(label, row)
    return row
  }

  #wantedMoment({ faults, planned }: Row, random: SeededRandom): Moment | undefined {
    const counted = this.moments.map((moment) => ({
      moment,
      count: (faults.get(moment) ?? 0) + (planned.get(moment) ?? 0),
    }))
    const least = Math.min(...counted.map(({ count }) => count))
    const total = counted.reduce((sum, { count }) => sum + count, 0)
    const isWanted = this.#aim === 'each' ? least === 0 : random.chance(AGAIN_CHANCE / (1 + total))
    return isWanted ? random.pick(counted.filter(({ count }) => count === least))?.moment : undefined
  }
}
