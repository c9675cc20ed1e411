import { setTimeout as sleep } from 'node:timers/promises'

import type { SeededRandom } from './seeded-random.ts'

/**
 * When a connection breaks, seen from one statement: before Postgres receives it, while Postgres executes it, or after Postgres has
 * answered and before the client gets the answer. `silence` drops the answer and leaves the connection half-open.
 */
export type Moment = 'before' | 'during' | 'after' | 'silence'

export const CUT_MOMENTS: readonly Moment[] = ['before', 'during', 'after']

interface FaultPlanOptions {
  readonly moments: readonly Moment[]
  /** The minimum time between two faults, in milliseconds, so that workers make progress. A rare statement waits a quarter of it. */
  readonly gapMs: number
  /** How many connections may be silent at the same time. */
  readonly openMax: number
  readonly random: SeededRandom
  readonly now: () => number
}

interface Row {
  readonly label: string
  /** How often workers have sent it. */
  sent: number
  /** True if it was sent in the warm-up, before any fault. */
  readonly isLearned: boolean
  readonly faults: Map<Moment, number>
  /** How many faults are chosen and not over, for each moment. */
  readonly planned: Map<Moment, number>
}

/** `each` cuts what has not been cut yet. `again` cuts anything, most likely what was cut least. */
type Aim = 'nothing' | 'each' | 'again'

/** A statement that was sent less often than this needs no cut at every moment, unless it was sent in the warm-up. */
const SELDOM = 6
/** A statement that was sent more often than this is likely to be sent again soon. */
const OFTEN = 100
const AGAIN_CHANCE = 0.3
const LOOK_EVERY_MS = 250

/** Decides which statement is cut at which moment, and counts the cuts. */
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

  /** The time of the last fault, in epoch milliseconds. */
  get lastAt(): number {
    return this.#lastAt
  }

  /** The plan begins with the aim 'nothing': it only learns which statements are sent. */
  aimAt(aim: Aim): void {
    this.#aim = aim
    this.#isLearning = false
  }

  /** Forgets the statements so far. Some are sent only by the first worker on an empty database, so they cannot be cut three times. */
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

  /** Records that the chosen fault has happened. */
  happened(label: string, moment: Moment): void {
    const { faults } = this.#rowOf(label)
    faults.set(moment, (faults.get(moment) ?? 0) + 1)
    this.#total += 1
    this.noteFault()
  }

  /** Records the end of a silence. It is not counted as a fault, but waits are measured from it. */
  noteFault(): void {
    this.#lastAt = this.#options.now()
  }

  /** Records that a fault has ended, or that its connection ended before it. */
  over(label: string, moment: Moment): void {
    const { planned } = this.#rowOf(label)
    planned.set(moment, (planned.get(moment) ?? 0) - 1)
    this.#open -= 1
  }

  /** Resolves once no fault is in progress, or after the limit. */
  async untilOver(limitMs: number): Promise<void> {
    const endsAt = this.#options.now() + limitMs
    while (this.#open > 0 && this.#options.now() < endsAt) await sleep(LOOK_EVERY_MS)
  }

  /** The statements in the order in which they were first sent. */
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
