import type { Clock } from '../clock.ts'
import { lookAhead, type AgendaSource, type LaneDue, type LaneFrom, type LanePlace } from '../store/agenda.ts'
import type { Db } from '../store/database.ts'
import { NOTIFY_WITHIN_MS } from '../store/notifications.ts'

/** No further: what becomes due sooner than that is told by a notification, everything else is seen in time. */
const LOOK_AHEAD_MS = NOTIFY_WITHIN_MS
/** Between looks at whole lanes, so that nothing can hide before what was claimed for longer: a claim may come to nothing. */
const FULL_LOOK_EVERY_MS = 1000
/** How long before a slot its claim begins, so that at the slot itself nothing is left but to commit. */
const LEAD_MS = 8
/** A waiting run is taken by a single statement, and by its own clock: what comes an instant too early finds nothing. */
const RUN_LAG_MS = 1
/** How long a lane is left alone whose claim came back empty: another worker has taken what is due, or somebody holds it. */
const CONTENDED_FIRST_MS = 5
const CONTENDED_MAX_MS = 500
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** What may be claimed. */
export interface Due {
  /** The longest waiting first. */
  readonly lanes: readonly LaneDue[]
  /** The slot they wait for, if it has not come yet: whoever claims them holds back the commit until then. */
  readonly slotAt: number | null
}

/** A lane whose claim came back empty. What it shows up to there is passed over until it is tried again. */
interface Contention {
  readonly dueAt: number
  readonly pauseMs: number
  readonly againAtMs: number
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
  readonly #served: ReadonlySet<string>
  /** What the last look saw. */
  #ahead: readonly LaneDue[] = []
  /** By how much Postgres' clock is ahead of the monotonic one here, as of the last look. */
  #clockOffsetMs = 0
  #restMs = 0
  #isSlept = false
  /** Behind which position to look on in a lane: after a herd, dead index entries lie before it until they are vacuumed. */
  readonly #claimed = new Map<string, LanePlace>()
  readonly #contended = new Map<string, Contention>()
  #fullLookAtMs = -Infinity
  /** Counts what was forgotten. */
  #generation = 0
  /** Of each served lane that a notification named, and of all lanes (''), the generation in which it was forgotten. */
  readonly #forgottenAt = new Map<string, number>()

  constructor({ db, clock, lanes }: { db: Db; clock: Clock; lanes: readonly string[] }) {
    this.#db = db
    this.#clock = clock
    this.#lanes = lanes
    this.#served = new Set(lanes)
  }

  /** How long until something may be due, as of the last look. */
  get restMs(): number {
    return this.#restMs
  }

  /** To be read before a claim, and given to `claimed` after it. */
  get generation(): number {
    return this.#generation
  }

  /** Says that the rest is over: what the last look saw is at hand, and a second look would only make it late. */
  slept(): void {
    this.#isSlept = this.#ahead.length > 0
  }

  /** What is due, or else the slot that is at hand. */
  async findDue(): Promise<Due> {
    if (this.#isSlept) {
      this.#isSlept = false
      const due = this.#atHand()
      if (due.lanes.length > 0) return due
    }
    const now = await this.#look()
    const due = this.#ahead.filter(({ dueAt }) => dueAt <= now)
    if (due.length > 0) return { lanes: due, slotAt: null }
    return this.#restMs > 0 ? NOTHING : this.#atHand()
  }

  /** Behind what was claimed already in lanes that are due. */
  from(source: AgendaSource, lanes: readonly string[]): LaneFrom[] {
    return lanes.map((lane) => ({ lane, after: this.#after(source, lane) }))
  }

  /**
   * Remembers up to where lanes were claimed. One that gave nothing is left alone for a while, longer each time: who holds its
   * row must not keep this worker busy. A lane that was forgotten since the claim began is not remembered: what the notification
   * told of may lie before what was claimed.
   * @param since the `generation` before the claim
   */
  claimed(asked: readonly LaneDue[], last: ReadonlyMap<string, LanePlace>, since: number): void {
    const nowMs = this.#clock.monotonicMs()
    for (const { source, lane, dueAt } of asked) {
      if (Math.max(this.#forgottenAt.get(lane) ?? 0, this.#forgottenAt.get('') ?? 0) > since) continue
      const name = nameOf(source, lane)
      const place = last.get(lane)
      if (place !== undefined) {
        this.#claimed.set(name, place)
        this.#contended.delete(name)
        continue
      }
      const before = this.#contended.get(name)
      const pauseMs = before === undefined ? CONTENDED_FIRST_MS : Math.min(before.pauseMs * 2, CONTENDED_MAX_MS)
      // On a grid, so that many such lanes are tried together, and never later than the pause says.
      const againAtMs = Math.floor((nowMs + pauseMs) / pauseMs) * pauseMs
      this.#contended.set(name, { dueAt, pauseMs, againAtMs })
    }
  }

  /**
   * Looks at a whole lane next time: something may have come to lie before what was claimed.
   * @param lane @default all of them
   * @returns whether this worker serves it
   */
  forget(lane = ''): boolean {
    this.#generation += 1
    if (lane === '' || this.#served.has(lane)) this.#forgottenAt.set(lane, this.#generation)
    if (lane === '') {
      this.#fullLookAtMs = -Infinity
      this.#contended.clear()
      return true
    }
    for (const source of ['slot', 'run'] as const) {
      this.#claimed.delete(nameOf(source, lane))
      this.#contended.delete(nameOf(source, lane))
    }
    return this.#served.has(lane)
  }

  /** The instant that a test names does not pass while a claim waits for it. */
  get #leadMs(): number {
    return this.#clock.databaseNow() === null ? LEAD_MS : 0
  }

  /** The next slots, shortly before their instant, and runs that have come due since the last look. */
  #atHand(): Due {
    const now = this.#clock.monotonicMs() + this.#clockOffsetMs
    const first = this.#ahead.find(({ source }) => source === 'slot')
    const isAtHand = first !== undefined && first.dueAt - now <= this.#leadMs + 1
    const lanes = this.#ahead.filter(({ source, dueAt }) =>
      source === 'slot' ? isAtHand && dueAt === first.dueAt : dueAt <= now,
    )
    return { lanes, slotAt: isAtHand && this.#leadMs > 0 ? first.dueAt : null }
  }

  /** @returns Postgres' clock when it answered */
  async #look(): Promise<number> {
    const askedMs = this.#clock.monotonicMs()
    if (askedMs - this.#fullLookAtMs >= FULL_LOOK_EVERY_MS) {
      this.#fullLookAtMs = askedMs
      this.#claimed.clear()
    }
    const { now, lanes } = await lookAhead(this.#db, {
      slots: this.from('slot', this.#lanes),
      runs: this.from('run', this.#lanes),
      horizonMs: LOOK_AHEAD_MS,
      now: this.#clock.databaseNow(),
    })
    this.#ahead = lanes
    this.#forgetContention(askedMs)
    const answeredMs = this.#clock.monotonicMs()
    // Postgres said its time half a round trip ago, as far as anybody can tell.
    this.#clockOffsetMs = now - (askedMs + answeredMs) / 2
    this.#restMs = Math.min(LOOK_AHEAD_MS, this.#untilNextMs(answeredMs), this.#untilRetryMs(answeredMs))
    return now
  }

  #untilNextMs(nowMs: number): number {
    const first = (wanted: AgendaSource): number =>
      this.#ahead.find(({ source }) => source === wanted)?.dueAt ?? Infinity
    const dueMs = Math.min(first('slot') - this.#leadMs, first('run') + (this.#leadMs > 0 ? RUN_LAG_MS : 0))
    return dueMs - this.#clockOffsetMs - nowMs
  }

  #untilRetryMs(nowMs: number): number {
    return Math.min(...this.#contended.values().map(({ againAtMs }) => againAtMs - nowMs))
  }

  /** What is passed over was claimed, or could not be. */
  #after(source: AgendaSource, lane: string): LanePlace | undefined {
    const name = nameOf(source, lane)
    const contention = this.#contended.get(name)
    if (contention !== undefined && this.#clock.monotonicMs() < contention.againAtMs) {
      return { dueAt: contention.dueAt, scheduleId: LAST_ID, slot: Infinity }
    }
    return this.#claimed.get(name)
  }

  /** A lane that shows something else by now than what could not be claimed is as good as any other. */
  #forgetContention(lookedAtMs: number): void {
    if (this.#contended.size === 0) return
    const shown = new Map(this.#ahead.map(({ source, lane, dueAt }) => [nameOf(source, lane), dueAt]))
    for (const [name, { againAtMs, dueAt }] of this.#contended) {
      if (againAtMs <= lookedAtMs && shown.get(name) !== dueAt) this.#contended.delete(name)
    }
  }
}

function nameOf(source: AgendaSource, lane: string): string {
  return `${source} ${lane}`
}
