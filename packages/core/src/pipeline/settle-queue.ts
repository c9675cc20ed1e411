import type { Db } from '../db/database.ts'
import { isCausedByRow, SQLSTATE, sqlStateOf } from '../db/sqlstate.ts'
import { Batcher } from '../kernel/batcher.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import { FailureRecord, pauseAfter, type MonitoredPart, type ServiceFailure } from '../kernel/failure-record.ts'
import type { HeldRun } from '../ledger/held-run.ts'
import { emitSettled, needsNoLock, settleBatch } from './settle.ts'
import { settleSuccesses } from './store/settle-successes.ts'
import type { SettledRun, Settlement } from './store/settle.ts'

export interface SettleQueueDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
}

interface Waiting {
  readonly run: HeldRun
  readonly settlement: Settlement
  readonly done: () => void
}

/** Settlements that need no lock are written apart from those that lock their schedules. */
type LockMode = 'lock-free' | 'locked'
/** Writes a batch: lock-free, under schedule locks, or a retry of a refused batch. */
type Writer = LockMode | 'refused'

/** How many settlements one batch holds at most. */
const BATCH_MAX = 1000
/** After a batch of at least DELAY_FROM settlements the queue waits a moment for more, unless DELAY_TO or more are waiting already. */
const DELAY_FROM = 8
const DELAY_TO = 250
/** The pause after a batch that could not be written. It doubles with each further failure in a row. */
const PAUSE = { firstMs: 250 }
/** A refused batch is cut into this many pieces: a batch of a thousand is single rows after four rounds. */
const PIECES = 8

/**
 * SETTLE in micro-batches: a single attempt is settled at once, a herd a thousand at a time. The queue retries a batch until it is
 * written, or until `abandon`. The fence makes a second write of the same settlement harmless (I12), even if the first commit
 * succeeded and only its answer was lost.
 *
 * One row must not stall the others. Settlements that need no lock do not wait for those that do. A batch that Postgres refuses
 * because of a row is cut up and retried apart, while other batches go on. The queue writes at most three batches at a time, so
 * that begin, take and rescue keep connections of the pool even if the rows of all three batches are locked.
 */
export class SettleQueue implements MonitoredPart {
  readonly name = 'settle queue'
  readonly #deps: SettleQueueDeps
  /** One per writer: a success of one says nothing about the others. */
  readonly #failures: Readonly<Record<Writer, FailureRecord>>
  readonly #batchers: Readonly<Record<LockMode, Batcher<Waiting>>>
  /**
   * Ids of schedules with a settlement in a batch that is being written. Another settlement of such a schedule waits, so that the
   * schedule's counters count its runs one after the other.
   */
  readonly #taken = new Set<string>()
  #refused: (readonly Waiting[])[] = []
  #isWritingRefused = false
  readonly #abandoned = new AbortController()

  constructor(deps: SettleQueueDeps) {
    this.#deps = deps
    const newRecord = (): FailureRecord => new FailureRecord(deps, this)
    this.#failures = { 'lock-free': newRecord(), locked: newRecord(), refused: newRecord() }
    this.#batchers = { 'lock-free': this.#newBatcher('lock-free'), locked: this.#newBatcher('locked') }
  }

  /** The failure of the writer that has failed for longest. */
  get failure(): ServiceFailure | undefined {
    const failures = Object.values(this.#failures).flatMap(({ failure }) => failure ?? [])
    return failures.toSorted((a, b) => b.forMs - a.forMs)[0]
  }

  /** Resolves once the settlement is written, or its fence no longer holds. */
  settle(run: HeldRun, settlement: Settlement): Promise<void> {
    return new Promise((done) => this.#batchers[lockModeOf(settlement)].add({ run, settlement, done }))
  }

  /** Gives up what cannot be written. Another worker's rescuer finds those runs. */
  abandon(): void {
    this.#abandoned.abort()
  }

  #newBatcher(mode: LockMode): Batcher<Waiting> {
    return new Batcher({
      batchMax: BATCH_MAX,
      claim: ({ settlement }) => this.#claim(settlement),
      write: async (batch) => void (await this.#write(batch, mode)),
      // Without a pause, each statement would write the few attempts that just ended, and cost as much as one for hundreds.
      pause: async (written) => {
        const waiting = this.#batchers['lock-free'].waiting + this.#batchers.locked.waiting
        if (written >= DELAY_FROM && waiting < DELAY_TO) await this.#deps.clock.batchDelay()
      },
      onRejection: (error) => this.#failures[mode].failed(error),
    })
  }

  /** False if another settlement of the schedule is being written: at most one per schedule at a time. */
  #claim({ scheduleId }: Settlement): boolean {
    if (this.#taken.has(scheduleId)) return false
    this.#taken.add(scheduleId)
    return true
  }

  /** @returns false if Postgres refused the batch because of a row */
  async #write(batch: readonly Waiting[], writer: Writer): Promise<boolean> {
    const { signal } = this.#abandoned
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        this.#emit(batch, await this.#settle(batch))
        if (writer !== 'refused') this.#failures[writer].succeeded()
        break
      } catch (error) {
        if (isCausedByRow(error)) {
          // The writer itself works: Postgres answered.
          if (writer !== 'refused') this.#failures[writer].succeeded()
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
    this.#failures.refused.failed(error)
    this.#refused.push(...piecesOf(batch))
    if (!this.#isWritingRefused) this.#failures.refused.reportRejection(this.#writeRefused())
  }

  /** Writes a batch whose settlements have the same lock mode. */
  async #settle(batch: readonly Waiting[]): Promise<readonly SettledRun[]> {
    const { db, clock } = this.#deps
    const [first] = batch
    const settlements = batch.map(({ settlement }) => settlement)
    // A worker that lost its lease and got a new one has a new id. A batch from both leases needs an id per settlement.
    const isOfOneLease = batch.every(({ run }) => run.workerId === first?.run.workerId)
    if (first === undefined || lockModeOf(first.settlement) === 'locked' || !isOfOneLease) {
      return settleBatch(this.#deps, settlements)
    }
    try {
      const { workerId } = first.run
      const { settledAt, left } = await settleSuccesses(db, { settlements, workerId, now: clock.databaseNow() })
      const written = batch.filter((_, index) => !left.has(index)).map(({ run }) => succeeded(run, settledAt))
      // Either fenced, or to be settled under the schedule's lock because its overlap policy was edited: settleBatch decides.
      const others = settlements.filter((_, index) => left.has(index))
      return others.length === 0 ? written : [...written, ...(await settleBatch(this.#deps, others))]
    } catch (error) {
      // An attempt with this key exists, written by hand or restored. settleBatch keeps it.
      if (sqlStateOf(error) !== SQLSTATE.uniqueViolation) throw error
      return settleBatch(this.#deps, settlements)
    }
  }

  /** Writes the pieces in rounds. A piece that waits for a lock delays the others once: they are written before the next round. */
  async #writeRefused(): Promise<void> {
    this.#isWritingRefused = true
    try {
      for (let failedRounds = 1; this.#refused.length > 0;) {
        await this.#deps.clock.sleep(pauseAfter(failedRounds, PAUSE), this.#abandoned.signal)
        const pieces = this.#refused
        this.#refused = []
        let written = 0
        for (const piece of pieces) if (await this.#write(piece, 'refused')) written += 1
        // While some pieces can be written, the pause stays short for the rest.
        failedRounds = written > 0 ? 1 : failedRounds + 1
      }
      this.#failures.refused.succeeded()
    } finally {
      this.#isWritingRefused = false
    }
  }

  #finish(batch: readonly Waiting[]): void {
    for (const { settlement, done } of batch) {
      this.#taken.delete(settlement.scheduleId)
      done()
    }
    // Further settlements of these schedules may be written now, in either mode.
    for (const batcher of Object.values(this.#batchers)) batcher.wake()
  }

  #emit(batch: readonly Waiting[], settled: readonly SettledRun[]): void {
    const { events } = this.#deps
    const written = new Map(settled.map((run) => [run.runId, run]))
    for (const { run } of batch) {
      const { runId, scheduleId, scheduledFor } = run
      const settledRun = written.get(runId)
      if (settledRun === undefined) events.emit('attempt.fenced', { runId, scheduleId, scheduledFor })
      else emitSettled(events, settledRun)
    }
  }
}

/** The settled run, built from the run that this worker holds: the statement for successes returns no row per run. */
function succeeded(run: HeldRun, settledAt: number): SettledRun {
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

function lockModeOf(settlement: Settlement): LockMode {
  return needsNoLock(settlement) ? 'lock-free' : 'locked'
}

function piecesOf<Item>(items: readonly Item[]): Item[][] {
  const size = Math.ceil(items.length / PIECES)
  return Array.from({ length: Math.ceil(items.length / size) }, (_, n) => items.slice(n * size, (n + 1) * size))
}
