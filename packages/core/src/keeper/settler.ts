import type { Clock } from '../clock.ts'
import type { Events } from '../events.ts'
import { FailureRecord, pauseAfter, type Part, type ServiceFailure } from '../failure-record.ts'
import { isPlain, settleBatch, type PendingSettlement } from '../settle-batch.ts'
import { tellSettled } from '../settled-events.ts'
import type { Db } from '../store/database.ts'
import { settleSuccesses } from '../store/settle-successes.ts'
import type { Settled } from '../store/settle.ts'
import { isCausedByRow, SQLSTATE, sqlStateOf } from '../store/sqlstate.ts'
import type { TakenRun } from '../store/taken-run.ts'

export interface SettlerDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
}

interface Waiting extends PendingSettlement {
  readonly run: TakenRun
  readonly done: () => void
}

/** Two ways to write, each with a batch of its own under way. */
type Way = 'plain' | 'locked'
/** Who writes a batch: one of the two ways, or the loop over what was set apart. */
type Writer = Way | 'apart'

const BATCH_MAX = 1000
const GATHER_FROM = 8
const GATHER_TO = 250
/** After a batch that could not be written; longer after each further failure, as in a service. */
const PAUSE = { firstMs: 250 }
/** Into how many a batch is cut that cannot be written: a thousand are single ones after four times. */
const PIECES = 8

/**
 * SETTLE, in micro-batches: while one is being written the next one gathers, so a lone attempt is settled at once and a
 * herd a thousand at a time. What cannot be written is tried until it can: its fence makes a second write of the same
 * settlement do nothing, also where the answer to the first commit was lost.
 *
 * One row must not stall the others. Plain successes are written without waiting for those that lock their schedules; and
 * a batch in which a row may be at fault is set apart and cut up, while the next ones go on. The settler writes at most three
 * batches at a time, so that the pipeline's pool has connections left for begin, take and rescue while the rows of all three are locked.
 */
export class Settler implements Part {
  readonly name = 'settler'
  readonly #deps: SettlerDeps
  /** One for each writer: a success of one says nothing about the others. */
  readonly #failures: Readonly<Record<Writer, FailureRecord>>
  #waiting: Waiting[] = []
  /** Schedules of which a settlement is being written or set apart: the counters of each follow its runs one by one. */
  readonly #taken = new Set<string>()
  readonly #busy = new Set<Way>()
  #apart: (readonly Waiting[])[] = []
  #isWritingApart = false
  readonly #abandoned = new AbortController()

  constructor(deps: SettlerDeps) {
    this.#deps = deps
    const newRecord = (): FailureRecord => new FailureRecord(deps, this)
    this.#failures = { plain: newRecord(), locked: newRecord(), apart: newRecord() }
  }

  /** That of the writer that has failed for longest. */
  get failure(): ServiceFailure | undefined {
    const failures = Object.values(this.#failures).flatMap(({ failure }) => failure ?? [])
    return failures.toSorted((a, b) => b.forMs - a.forMs)[0]
  }

  /** Resolves once the settlement is written, or found to be no longer this worker's to write. */
  settle(run: TakenRun, pending: PendingSettlement): Promise<void> {
    return new Promise((done) => {
      const waiting = { ...pending, run, done }
      this.#waiting.push(waiting)
      this.#start(wayOf(waiting))
    })
  }

  /** Gives up what cannot be written; the rescuer of another worker will find it. */
  abandon(): void {
    this.#abandoned.abort()
  }

  #start(way: Way): void {
    if (!this.#busy.has(way)) this.#failures[way].own(this.#writeAll(way))
  }

  async #writeAll(way: Way): Promise<void> {
    this.#busy.add(way)
    try {
      // One turn of the event loop: what was dispatched together settles together.
      await Promise.resolve()
      for (let batch = this.#takeBatch(way); batch.length > 0; batch = this.#takeBatch(way)) {
        await this.#write(batch, way)
        // Where many end, but not at once, each statement would write a few of them, and cost as much as for hundreds.
        if (batch.length >= GATHER_FROM && this.#waiting.length < GATHER_TO) await this.#deps.clock.gather()
      }
    } finally {
      this.#busy.delete(way)
    }
  }

  /** At most one per schedule, and none of a schedule that is being written. */
  #takeBatch(way: Way): Waiting[] {
    const batch: Waiting[] = []
    const later: Waiting[] = []
    for (const waiting of this.#waiting) {
      const { scheduleId } = waiting.settlement
      if (wayOf(waiting) !== way || batch.length >= BATCH_MAX || this.#taken.has(scheduleId)) {
        later.push(waiting)
      } else {
        this.#taken.add(scheduleId)
        batch.push(waiting)
      }
    }
    this.#waiting = later
    return batch
  }

  /** @returns false if the batch was set apart */
  async #write(batch: readonly Waiting[], writer: Writer): Promise<boolean> {
    const { signal } = this.#abandoned
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        this.#tell(batch, await this.#settle(batch))
        if (writer !== 'apart') this.#failures[writer].succeeded()
        break
      } catch (error) {
        if (isCausedByRow(error)) {
          // The writer itself works: Postgres answered.
          if (writer !== 'apart') this.#failures[writer].succeeded()
          this.#setApart(batch, error)
          return false
        }
        this.#failures[writer].failed(error)
        await this.#deps.clock.sleep(pauseAfter(failures, PAUSE), signal)
      }
    }
    this.#finish(batch)
    return true
  }

  #setApart(batch: readonly Waiting[], error: unknown): void {
    this.#failures.apart.failed(error)
    this.#apart.push(...piecesOf(batch))
    if (!this.#isWritingApart) this.#failures.apart.own(this.#writeApart())
  }

  /** All of a batch go the same way. */
  async #settle(batch: readonly Waiting[]): Promise<readonly Settled[]> {
    const { db, clock } = this.#deps
    const [first] = batch
    // A lease that was lost and had again has another name: then some are fenced, and each says its own.
    const isOfOneLease = batch.every(({ run }) => run.workerId === first?.run.workerId)
    if (first === undefined || wayOf(first) === 'locked' || !isOfOneLease) return settleBatch(this.#deps, batch)
    try {
      const successes = batch.map(({ settlement }) => settlement)
      const { workerId } = first.run
      const { settledAt, left } = await settleSuccesses(db, { successes, workerId, now: clock.databaseNow() })
      const written = batch.filter((_, place) => !left.has(place)).map(({ run }) => succeeded(run, settledAt))
      // Fenced, or to be settled under the lock of its schedule since its overlap policy was edited: that way tells the two apart.
      const others = batch.filter((_, place) => left.has(place))
      return others.length === 0 ? written : [...written, ...(await settleBatch(this.#deps, others))]
    } catch (error) {
      // An attempt is there already, written by hand or restored: the other statement knows how to leave it.
      if (sqlStateOf(error) !== SQLSTATE.uniqueViolation) throw error
      return settleBatch(this.#deps, batch)
    }
  }

  /** Round by round: a piece that waits for a lock delays its neighbours by that once, and not again in the next round. */
  async #writeApart(): Promise<void> {
    this.#isWritingApart = true
    try {
      for (let vainRounds = 1; this.#apart.length > 0;) {
        await this.#deps.clock.sleep(pauseAfter(vainRounds, PAUSE), this.#abandoned.signal)
        const pieces = this.#apart
        this.#apart = []
        let written = 0
        for (const piece of pieces) if (await this.#write(piece, 'apart')) written += 1
        // While pieces are written, those without a faulty row do not wait for longer than they have to.
        vainRounds = written > 0 ? 1 : vainRounds + 1
      }
      this.#failures.apart.succeeded()
    } finally {
      this.#isWritingApart = false
    }
  }

  #finish(batch: readonly Waiting[]): void {
    for (const { settlement, done } of batch) {
      this.#taken.delete(settlement.scheduleId)
      done()
    }
    // What waited for one of these schedules may be written now, the other way perhaps.
    for (const way of new Set(this.#waiting.map(wayOf))) this.#start(way)
  }

  #tell(batch: readonly Waiting[], settled: readonly Settled[]): void {
    const { events } = this.#deps
    const written = new Map(settled.map((run) => [run.runId, run]))
    for (const { run } of batch) {
      const settled = written.get(run.runId)
      if (settled === undefined) tellFenced(events, run)
      else tellSettled(events, settled)
    }
  }
}

function tellFenced(events: Events, { runId, scheduleId, scheduledFor }: TakenRun): void {
  events.emit('attempt.fenced', { runId, scheduleId, scheduledFor })
}

/** What the ledger now says of a run, which is known without reading it. */
function succeeded(run: TakenRun, settledAt: number): Settled {
  const { runId, scheduleId, scheduledFor, tenantId, projectId, targetKind, attempt, startedAt } = run
  const slot = { scheduleId, scheduledFor, tenantId, projectId, targetKind }
  return {
    ...slot,
    runId,
    attempt,
    state: 'succeeded',
    reason: null,
    startedAt,
    settledAt,
    dueAt: null,
    lane: null,
    isAutoPaused: false,
  }
}

function wayOf(pending: PendingSettlement): Way {
  return isPlain(pending) ? 'plain' : 'locked'
}

function piecesOf<Item>(items: readonly Item[]): Item[][] {
  const size = Math.ceil(items.length / PIECES)
  return Array.from({ length: Math.ceil(items.length / size) }, (_, n) => items.slice(n * size, (n + 1) * size))
}
