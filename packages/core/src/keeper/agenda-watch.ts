import type { Clock } from '../clock.ts'
import { lookAhead, type LaneDue, type LaneFrom, type LanePlace } from '../store/agenda.ts'
import type { Db } from '../store/database.ts'

/** No further: what becomes due sooner than that is told by a notification, everything else is seen in time. */
const LOOK_AHEAD_MS = 1000
/** Between looks at whole lanes, so that nothing can hide before what was claimed for longer: a claim may come to nothing. */
const FULL_LOOK_EVERY_MS = 1000
/** How long before a slot its claim begins, so that at the slot itself nothing is left but to commit. */
const LEAD_MS = 8

/** What may be claimed. */
export interface Due {
  /** The longest waiting first. */
  readonly lanes: readonly string[]
  /** The slot they wait for, if it has not come yet: whoever claims them holds back the commit until then. */
  readonly slotAt: number | null
}

const NOTHING: Due = { lanes: [], slotAt: null }

/**
 * Knows which lanes are due, and how long to sleep until the next one is. Sleeps by Postgres' clock: the wait is the
 * distance between two instants that Postgres told. Decides nothing; a claim finds what is really due (I10).
 */
export class AgendaWatch {
  readonly #db: Db
  readonly #clock: Clock
  readonly #lanes: readonly string[]
  /** What the last look saw ahead. */
  #ahead: readonly LaneDue[] = []
  #restMs = 0
  #isSlept = false
  /** Behind which place to look on in a lane: after a herd, dead index entries lie before it until they are vacuumed. */
  #claimed = new Map<string, LanePlace>()
  #fullLookAtMs = -Infinity

  constructor({ db, clock, lanes }: { db: Db; clock: Clock; lanes: readonly string[] }) {
    this.#db = db
    this.#clock = clock
    this.#lanes = lanes
  }

  /** How long until something may be due, as of the last look. */
  get restMs(): number {
    return this.#restMs
  }

  /** Says that the rest is over: what the last look saw is at hand, and a second look would only make it late. */
  slept(): void {
    this.#isSlept = this.#ahead.length > 0
  }

  /** What is due, or else the slot that is at hand. */
  async findDue(): Promise<Due> {
    if (this.#isSlept) {
      this.#isSlept = false
      return this.#atHand()
    }
    const askedMs = this.#clock.monotonicMs()
    const { now, lanes } = await this.#look()
    this.#ahead = lanes
    // Postgres said its time half a round trip ago, as far as anybody can tell.
    const agoMs = (this.#clock.monotonicMs() - askedMs) / 2
    this.#restMs = Math.min(LOOK_AHEAD_MS, (lanes[0]?.dueAt ?? Infinity) - now - agoMs - this.#leadMs)
    const due = lanes.filter(({ dueAt }) => dueAt <= now)
    if (due.length > 0) return { lanes: due.map(({ lane }) => lane), slotAt: null }
    return this.#restMs > 0 ? NOTHING : this.#atHand()
  }

  /** Behind what was claimed already in lanes that are due. */
  from(lanes: readonly string[]): LaneFrom[] {
    return lanes.map((lane) => ({ lane, after: this.#claimed.get(lane) }))
  }

  /** Remembers up to where lanes were claimed. */
  claimed(last: ReadonlyMap<string, LanePlace>): void {
    for (const [lane, place] of last) this.#claimed.set(lane, place)
  }

  /** Looks at whole lanes next time: something may have come to lie before what was claimed. */
  forget(): void {
    this.#fullLookAtMs = -Infinity
  }

  /** The instant that a test names does not pass while a claim waits for it. */
  get #leadMs(): number {
    return this.#clock.databaseNow() === null ? LEAD_MS : 0
  }

  #atHand(): Due {
    const [first] = this.#ahead
    if (first === undefined) return NOTHING
    const lanes = this.#ahead.filter(({ dueAt }) => dueAt === first.dueAt).map(({ lane }) => lane)
    return { lanes, slotAt: this.#leadMs > 0 ? first.dueAt : null }
  }

  #look(): ReturnType<typeof lookAhead> {
    const isFull = this.#clock.monotonicMs() - this.#fullLookAtMs >= FULL_LOOK_EVERY_MS
    if (isFull) {
      this.#fullLookAtMs = this.#clock.monotonicMs()
      this.#claimed.clear()
    }
    return lookAhead(this.#db, {
      lanes: this.from(this.#lanes),
      horizonMs: LOOK_AHEAD_MS,
      now: this.#clock.databaseNow(),
    })
  }
}
