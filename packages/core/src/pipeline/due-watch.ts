import type { Db } from '../db/database.ts'
import { NOTIFY_WITHIN_MS } from '../db/notify.ts'
import type { Clock } from '../kernel/clock.ts'
import { lookAhead, type DueSource, type DueLane, type LaneFrom, type LanePosition } from './store/look.ts'

/**
 * A look sees what comes due within this time, and the next look comes before it is over. A change that makes something due sooner
 * sends a NOTIFY.
 */
const LOOK_AHEAD_MS = NOTIFY_WITHIN_MS
/**
 * How often a look starts at the beginning of each lane instead of after the last claimed position. A claim that was rolled back leaves
 * due rows before that position.
 */
const FULL_LOOK_EVERY_MS = 1000
/** A claim starts this long before its slot, so that only the commit is left to do at the slot's instant. */
const LEAD_MS = 8
/**
 * A waiting run is taken this long after it is due. TAKE compares with the time at its own start, so a statement that arrives a moment
 * too early finds nothing.
 */
const RUN_LAG_MS = 1
/**
 * How long the watch skips a lane whose claim came back empty: another worker claimed what was due, or another transaction has locked
 * it. The pause doubles with each further empty claim, up to the maximum.
 */
const CONTENDED_FIRST_MS = 5
const CONTENDED_MAX_MS = 500
/** No id sorts after this one. */
const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** What can be claimed now. */
export interface Due {
  /** Earliest due first. */
  readonly lanes: readonly DueLane[]
  /** The instant of these lanes' slots if they are claimed ahead of it: the claim then commits at that instant. Null otherwise. */
  readonly slotAt: number | null
}

/**
 * A lane whose claim came back empty. Until `againAtMs` by the monotonic clock, looks and claims skip the rows of the lane whose due
 * instant is `dueAt` or earlier.
 */
interface Contention {
  readonly dueAt: number
  readonly pauseMs: number
  readonly againAtMs: number
}

const NOTHING: Due = { lanes: [], slotAt: null }

/**
 * Knows which lanes are due and how long to sleep until the next one is. The sleep is the difference between two instants of
 * Postgres' clock. A claim decides what is really due (I10).
 */
export class DueWatch {
  readonly #db: Db
  readonly #clock: Clock
  readonly #lanes: readonly string[]
  readonly #served: ReadonlySet<string>
  /** The result of the last look. */
  #ahead: readonly DueLane[] = []
  /** Postgres' clock minus this process's monotonic clock, as of the last look. */
  #clockOffsetMs = 0
  #sleepMs = 0
  #isSlept = false
  /** The last claimed position of a lane. The next look starts after it: before it are mostly dead index entries. */
  readonly #claimed = new Map<string, LanePosition>()
  /** The lanes to skip for a while. */
  readonly #contended = new Map<string, Contention>()
  #fullLookAtMs = -Infinity
  /** Grows with each call of `reset`. */
  #generation = 0
  /** The generation in which a lane was last reset; '' stands for all lanes. */
  readonly #resetAt = new Map<string, number>()

  constructor({ db, clock, lanes }: { db: Db; clock: Clock; lanes: readonly string[] }) {
    this.#db = db
    this.#clock = clock
    this.#lanes = lanes
    this.#served = new Set(lanes)
  }

  /** How long until something may be due, by the last look. */
  get sleepMs(): number {
    return this.#sleepMs
  }

  /** Read it before a claim and pass it to `claimed` after it. */
  get generation(): number {
    return this.#generation
  }

  /** Call it after the sleep: what the last look saw is due now, and another look would only add delay. */
  slept(): void {
    this.#isSlept = this.#ahead.length > 0
  }

  /** What is due, or the slots whose instant is a few milliseconds away. */
  async findDue(): Promise<Due> {
    if (this.#isSlept) {
      this.#isSlept = false
      const due = this.#atHand()
      if (due.lanes.length > 0) return due
    }
    const now = await this.#look()
    const due = this.#ahead.filter(({ dueAt }) => dueAt <= now)
    if (due.length > 0) return { lanes: due, slotAt: null }
    return this.#sleepMs > 0 ? NOTHING : this.#atHand()
  }

  /** The lanes, each with the position after which a look or a claim starts. */
  from(source: DueSource, lanes: readonly string[]): LaneFrom[] {
    return lanes.map((lane) => ({ lane, after: this.#after(source, lane) }))
  }

  /**
   * Stores the last claimed position of each lane. A lane whose claim came back empty is skipped for a while, longer each time, so
   * that a locked row does not keep this worker busy. If `reset` was called for a lane during the claim, nothing is stored for it:
   * something may have become due before the claimed position.
   * @param since the `generation` before the claim
   */
  claimed(asked: readonly DueLane[], last: ReadonlyMap<string, LanePosition>, since: number): void {
    const nowMs = this.#clock.monotonicMs()
    for (const { source, lane, dueAt } of asked) {
      if (Math.max(this.#resetAt.get(lane) ?? 0, this.#resetAt.get('') ?? 0) > since) continue
      const name = nameOf(source, lane)
      const position = last.get(lane)
      if (position !== undefined) {
        this.#claimed.set(name, position)
        this.#contended.delete(name)
        continue
      }
      const before = this.#contended.get(name)
      const pauseMs = before === undefined ? CONTENDED_FIRST_MS : Math.min(before.pauseMs * 2, CONTENDED_MAX_MS)
      // Rounded down to a multiple of the pause, so that many such lanes are tried together.
      const againAtMs = Math.floor((nowMs + pauseMs) / pauseMs) * pauseMs
      this.#contended.set(name, { dueAt, pauseMs, againAtMs })
    }
  }

  /**
   * Makes the next look start at the beginning of a lane: something may have become due before the claimed position.
   * @param lane @default all lanes
   * @returns true if this worker serves the lane
   */
  reset(lane = ''): boolean {
    this.#generation += 1
    if (lane === '' || this.#served.has(lane)) this.#resetAt.set(lane, this.#generation)
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

  /** Zero with a test's clock, which does not advance while a claim waits for the slot. */
  get #leadMs(): number {
    return this.#clock.databaseNow() === null ? LEAD_MS : 0
  }

  /** The next slots shortly before their instant, and runs that became due since the last look. */
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
    this.#dropContention(askedMs)
    const answeredMs = this.#clock.monotonicMs()
    // The best estimate: Postgres read its clock half a round trip ago.
    this.#clockOffsetMs = now - (askedMs + answeredMs) / 2
    this.#sleepMs = Math.min(LOOK_AHEAD_MS, this.#untilNextMs(answeredMs), this.#untilRetryMs(answeredMs))
    return now
  }

  #untilNextMs(nowMs: number): number {
    const first = (wanted: DueSource): number => this.#ahead.find(({ source }) => source === wanted)?.dueAt ?? Infinity
    const dueMs = Math.min(first('slot') - this.#leadMs, first('run') + (this.#leadMs > 0 ? RUN_LAG_MS : 0))
    return dueMs - this.#clockOffsetMs - nowMs
  }

  #untilRetryMs(nowMs: number): number {
    return Math.min(...this.#contended.values().map(({ againAtMs }) => againAtMs - nowMs))
  }

  /** Where to start in a lane: after what was claimed, or after what could not be claimed. */
  #after(source: DueSource, lane: string): LanePosition | undefined {
    const name = nameOf(source, lane)
    const contention = this.#contended.get(name)
    if (contention !== undefined && this.#clock.monotonicMs() < contention.againAtMs) {
      return { dueAt: contention.dueAt, scheduleId: LAST_ID, slot: Infinity }
    }
    return this.#claimed.get(name)
  }

  /** Drops the pause of a lane if it is over and the first due row has changed: the next empty claim starts with a short pause. */
  #dropContention(lookedAtMs: number): void {
    if (this.#contended.size === 0) return
    const shown = new Map(this.#ahead.map(({ source, lane, dueAt }) => [nameOf(source, lane), dueAt]))
    for (const [name, { againAtMs, dueAt }] of this.#contended) {
      if (againAtMs <= lookedAtMs && shown.get(name) !== dueAt) this.#contended.delete(name)
    }
  }
}

/** Lanes to claim from, and how many rows to claim from each at most. */
export interface LaneShare<Lane> {
  readonly lanes: readonly Lane[]
  readonly perLane: number
}

/**
 * Splits lanes among transactions that begin at the same time, so that they do not lock the same rows. A single lane goes to all
 * of them: each skips the rows that another has locked.
 */
export function splitLanes<Lane>(lanes: readonly Lane[], beginners: number): (readonly Lane[])[] {
  if (lanes.length === 1) return Array.from({ length: beginners }, () => lanes)
  const portions = Array.from({ length: beginners }, (_, n) => lanes.filter((_lane, at) => at % beginners === n))
  return portions.filter((portion) => portion.length > 0)
}

/**
 * Shares a worker's room among the lanes that are due, so that neither one tenant's herd nor a storm of retries takes all of it.
 * If there are more lanes than room, the lanes that were chosen longest ago get one run each. Otherwise the lane with the oldest due
 * rows would get every run that a full worker has room for.
 */
export class RoomShares {
  #turn = 0
  /** The value of `#turn` when a lane was last chosen while others were left out. At most one entry per lane. */
  readonly #turnOf = new Map<string, number>()

  /** @param lanes earliest due first */
  share<Lane extends Pick<DueLane, 'source' | 'lane'>>(lanes: readonly Lane[], room: number): LaneShare<Lane> {
    if (lanes.length === 0) return { lanes, perLane: 0 }
    if (lanes.length <= room) return { lanes, perLane: Math.floor(room / lanes.length) }
    const lastTurn = (lane: Lane): number => this.#turnOf.get(nameOf(lane.source, lane.lane)) ?? 0
    const chosen = lanes.toSorted((a, b) => lastTurn(a) - lastTurn(b)).slice(0, room)
    this.#turn += 1
    for (const lane of chosen) this.#turnOf.set(nameOf(lane.source, lane.lane), this.#turn)
    return { lanes: chosen, perLane: 1 }
  }
}

function nameOf(source: DueSource, lane: string): string {
  return `${source} ${lane}`
}
