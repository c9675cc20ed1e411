import { followClock, nowMs } from './clock.ts'
import type { Databases } from './databases.ts'
import type { Gathered } from './gathered.ts'
import { LoadedTooLate, lengthenLeads } from './lead-time.ts'
import type { Ground, Peer } from './measure.ts'
import type { Progress } from './progress.ts'
import type { BenchRedis } from './redis.ts'
import { formatNumber } from './report/number.ts'
import type { Failure } from './results.ts'
import type { Bench, BenchDatabase, Part, Plan, Reading, WorkName } from './work.ts'

/** The parts that a run is made of. */
export interface RunParts {
  readonly postgres: Databases
  /** Undefined if no Redis is available. */
  readonly redis: BenchRedis | undefined
  readonly gathered: Gathered
  readonly progress: Progress
  readonly signal: AbortSignal
  /** The time limit for one round of one part. */
  readonly patienceMs: number
  /** How many parts of a round run concurrently, if each has its own database. */
  readonly atOnce: number
  /** By how many milliseconds the system clock was set since the start: `clockStepMs`. */
  readonly clockStepMs: () => number
}

type Place = Omit<Failure, 'reason'>
type GroundWish = { isMigrated: boolean } | 'none'

/** The bench as one work sees it. Resources that works share belong to the run, so they outlive the work. */
export interface WorkView {
  readonly work: WorkName
  readonly rounds: number
  readonly peers: readonly Peer[]
}

/** Postgres: "terminating connection due to administrator command". */
const ADMIN_SHUTDOWN = '57P01'
/** Two clocks that are read one after the other differ by less than this many milliseconds. */
const STEADY_MS = 2
/** The largest factor by which a lead is lengthened. After that its part is abandoned. */
const LEAD_TIMES_MAX = 32
const NO_GROUND: Ground = { postgresUrl: '', redisUrl: undefined }

/** Measures parts in rounds, each on a database of its own, and keeps the readings. */
export class BenchRun implements AsyncDisposable {
  readonly #parts: RunParts
  readonly #shared = new Map<string, Promise<AsyncDisposable>>()
  #databases = 0
  /** The part in progress, to which an unexpected error is attributed. */
  #current: Place = { work: '', subject: '', size: 0, round: 0 }

  constructor(parts: RunParts) {
    this.#parts = parts
  }

  viewOf({ work, rounds, peers }: WorkView): Bench {
    const { redis, signal, progress, gathered } = this.#parts
    return {
      rounds,
      peers,
      redisUrl: redis?.url,
      signal,
      interleave: (parts, ground) => this.#interleave({ work, rounds, parts, ground }),
      createDatabase: (p) => this.#createDatabase(p),
      shared: (key, make) => this.#share(key, make),
      note: (text) => {
        progress.note(text)
      },
      plan: (plan: Plan) => gathered.plans.push(plan),
    }
  }

  /** Records an error that no promise carries: a broken connection, or a reply after the end. */
  unexpectedFailure(error: unknown): void {
    if (isEndedByUs(error)) return
    this.#fail(this.#current, `outside of its promise: ${messageOf(error)}`)
  }

  /** Records a work that could not begin, or could not prepare what its parts need. */
  workFailure(work: WorkName, error: unknown): void {
    this.#fail({ work, subject: 'the whole work', size: 0, round: 0 }, messageOf(error))
  }

  async #interleave(p: { work: WorkName; rounds: number; parts: readonly Part[]; ground: GroundWish }): Promise<void> {
    const failed = new Set<Part>()
    const measure = async (part: Part, round: number): Promise<void> => {
      this.#parts.signal.throwIfAborted()
      const place = { work: p.work, subject: part.subject, size: part.size, round }
      this.#current = place
      this.#parts.progress.begin(`${nameOf(place)} of ${p.rounds}`)
      if (!(await this.#measureOnce(place, part, p.ground))) failed.add(part)
    }
    for (let round = 1; round <= p.rounds; round += 1) {
      const due = p.parts.filter((part) => !failed.has(part) && round <= (part.rounds ?? p.rounds))
      const queue = orderOfRound(due, round).values()
      const measureNext = async (): Promise<void> => {
        for (const part of queue) await measure(part, round)
      }
      await Promise.all(Array.from({ length: p.ground === 'none' ? 1 : this.#parts.atOnce }, measureNext))
    }
  }

  /** @returns true if the part gave readings */
  async #measureOnce(place: Place, part: Part, ground: GroundWish): Promise<boolean> {
    const { gathered, progress, signal } = this.#parts
    const startedAt = nowMs()
    try {
      const readings = await this.#measureLoaded(part, ground)
      this.#requireSteadyClock()
      gathered.add(place, readings)
      const seconds = ((nowMs() - startedAt) / 1000).toFixed(1)
      progress.end(nameOf(place), `${readings.map(show).join(', ')} (${seconds} s)`)
      return true
    } catch (error) {
      // If the run ended, the part is not at fault.
      signal.throwIfAborted()
      this.#fail(place, messageOf(error))
      return false
    }
  }

  /**
   * If every schedule came due before it was loaded, the machine is busy. Then this measures again with twice the lead, on a new database.
   */
  async #measureLoaded(part: Part, ground: GroundWish): Promise<readonly Reading[]> {
    for (let times = 2; ; times *= 2) {
      try {
        return await this.#onGround(ground, (made) => this.#withPatience(part.measure(made)))
      } catch (error) {
        if (!(error instanceof LoadedTooLate) || times > LEAD_TIMES_MAX) throw error
        lengthenLeads(times)
      }
    }
  }

  /** If the system clock is set, `nowMs` does not follow but the measured systems do. The lateness would then be off by the step. */
  #requireSteadyClock(): void {
    const stepMs = this.#parts.clockStepMs()
    if (Math.abs(stepMs) <= STEADY_MS) return
    // The result of this part is lost. Later parts can still be measured.
    followClock()
    throw new Error(
      `expected a system clock that is not set during the run, got a step of ${formatNumber(stepMs)} ms: run the bench again`,
    )
  }

  async #onGround<Result>(ground: GroundWish, measure: (ground: Ground) => Promise<Result>): Promise<Result> {
    if (ground === 'none') return measure(NO_GROUND)
    // Concurrent parts share the Redis, so it is emptied only if parts run alone.
    if (this.#parts.atOnce === 1) await this.#parts.redis?.empty()
    await using database = await this.#createDatabase(ground)
    return await measure({ postgresUrl: database.url, redisUrl: this.#parts.redis?.url })
  }

  async #withPatience(measured: Promise<readonly Reading[]>): Promise<readonly Reading[]> {
    const { patienceMs, signal } = this.#parts
    const patience = AbortSignal.timeout(patienceMs)
    const { promise: gaveUp, reject } = Promise.withResolvers<never>()
    const giveUp = (): void => {
      reject(new Error(`expected an end within ${patienceMs / 1000} s, got none`))
    }
    const ended = AbortSignal.any([signal, patience])
    ended.addEventListener('abort', giveUp, { once: true })
    // The run may have been interrupted before this listener was added.
    if (ended.aborted) giveUp()
    try {
      return await Promise.race([measured, gaveUp])
    } finally {
      ended.removeEventListener('abort', giveUp)
    }
  }

  async #createDatabase({ isMigrated }: { isMigrated: boolean }): Promise<BenchDatabase> {
    const { postgres } = this.#parts
    this.#databases += 1
    const name = `bench_${this.#databases}`
    const url = isMigrated ? await postgres.createDatabase(name) : await postgres.createEmptyDatabase(name)
    const drop = (): Promise<void> => postgres.dropDatabase(name)
    return { url, drop, [Symbol.asyncDispose]: drop }
  }

  async #share<Thing extends AsyncDisposable>(key: string, make: () => Promise<Thing>): Promise<Thing> {
    const made = this.#shared.get(key) ?? make()
    this.#shared.set(key, made)
    // The same work's `make` made the value under this key, so it has this type.
    return (await made) as Thing
  }

  #fail(place: Place, reason: string): void {
    this.#parts.gathered.fail({ ...place, reason })
    this.#parts.progress.end(nameOf(place), `failed: ${reason}`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const made of await Promise.allSettled(this.#shared.values())) {
      if (made.status === 'fulfilled') await made.value[Symbol.asyncDispose]()
    }
  }
}

/** True for the error of a connection that was open when its database was dropped. Its part has ended already. */
function isEndedByUs(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === ADMIN_SHUTDOWN
}

function nameOf({ work, subject, size, round }: Place): string {
  return `${work} ${formatNumber(size)} · ${subject} · round ${round}`
}

function show({ metric, unit, value }: Reading): string {
  return `${metric} ${formatNumber(value)} ${unit}`
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.message === '' ? error.name : error.message
}

/**
 * The order of the parts in a round, counted from 1. Each round begins with the next size, and each size with the next subject. So no
 * subject is always first or always after the same one.
 */
export function orderOfRound(parts: readonly Part[], round: number): readonly Part[] {
  const bySize = [...Map.groupBy(parts, ({ size }) => size).values()]
  return rotated(bySize, round - 1).flatMap((ofSize) => rotated(ofSize, round - 1))
}

function rotated<Value>(values: readonly Value[], by: number): readonly Value[] {
  const start = values.length === 0 ? 0 : by % values.length
  return [...values.slice(start), ...values.slice(0, start)]
}
