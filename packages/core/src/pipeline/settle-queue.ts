import type { Db } from '../db/database.ts'
import { SQLSTATE, sqlStateOf } from '../db/sqlstate.ts'
import { Batcher } from '../kernel/batcher.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import { FailureRecord, pauseAfter, type MonitoredPart, type ServiceFailure } from '../kernel/failure-record.ts'
import type { HeldRun } from '../ledger/held-run.ts'
import type { Hooks } from './hooks.ts'
import { isOfOneRun, settleBatch } from './settle.ts'
import { emitSettled, needsNoLock, type SettledBatch } from './settlement.ts'
import { settleSuccesses } from './store/settle-successes.ts'
import type { SettledRun, Settlement } from './store/settle.ts'

export interface SettleQueueDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  readonly hooks: Hooks
}

interface Waiting {
  readonly run: HeldRun
  readonly settlement: Settlement
  readonly done: () => void
}

/**
 * What writes a batch: settlements that need no lock are written apart from those that lock their schedules, and those of a kind with
 * hooks apart from all others. `refused` tries batches again that Postgres or a hook refused.
 */
type Writer = 'lock-free' | 'locked' | 'refused' | `hooks of ${string}`

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
 * One row must not stall the others. Settlements that need no lock do not wait for those that do, and none waits for a hook of another
 * kind. A batch that is refused because of one of its runs is cut up and retried apart, while other batches go on. The queue writes at
 * most three batches at a time, and one for each kind with hooks, so that begin, take and rescue keep connections of the pool even if
 * the rows of all of them are locked.
 */
export class SettleQueue implements MonitoredPart {
  readonly name = 'settle queue'
  readonly #deps: SettleQueueDeps
  /** One per writer: a success of one says nothing about the others. */
  readonly #failures = new Map<Writer, FailureRecord>()
  readonly #batchers = new Map<Writer, Batcher<Waiting>>()
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
  }

  /** The failure of the writer that has failed for longest. */
  get failure(): ServiceFailure | undefined {
    const failures = [...this.#failures.values()].flatMap(({ failure }) => failure ?? [])
    return failures.toSorted((a, b) => b.forMs - a.forMs)[0]
  }

  /** Resolves once the settlement is written, or its fence no longer holds. */
  settle(run: HeldRun, settlement: Settlement): Promise<void> {
    return new Promise((done) => this.#batcherOf(this.#writerOf(settlement)).add({ run, settlement, done }))
  }

  /** Gives up what cannot be written. Another worker's rescuer finds those runs. */
  abandon(): void {
    this.#abandoned.abort()
  }

  #writerOf(settlement: Settlement): Writer {
    const { targetKind } = settlement.run
    if (this.#deps.hooks.kinds.has(targetKind)) return `hooks of ${targetKind}`
    return needsNoLock(settlement) ? 'lock-free' : 'locked'
  }

  #failuresOf(writer: Writer): FailureRecord {
    const known = this.#failures.get(writer)
    if (known !== undefined) return known
    const record = new FailureRecord(this.#deps, this)
    this.#failures.set(writer, record)
    return record
  }

  #batcherOf(writer: Writer): Batcher<Waiting> {
    const known = this.#batchers.get(writer)
    if (known !== undefined) return known
    const batcher = new Batcher<Waiting>({
      batchMax: BATCH_MAX,
      claim: ({ settlement }) => this.#claim(settlement),
      write: async (batch) => void (await this.#write(batch, writer)),
      // Without a pause, each statement would write the few attempts that just ended, and cost as much as one for hundreds.
      pause: async (written) => {
        if (written < DELAY_FROM) return
        const waiting = this.#batchers.values().reduce((sum, each) => sum + each.waiting, 0)
        if (waiting < DELAY_TO) await this.#deps.clock.batchDelay()
      },
      onRejection: (error) => this.#failuresOf(writer).failed(error),
    })
    this.#batchers.set(writer, batcher)
    return batcher
  }

  /** False if another settlement of the schedule is being written: at most one per schedule at a time. */
  #claim({ run: { scheduleId } }: Settlement): boolean {
    if (this.#taken.has(scheduleId)) return false
    this.#taken.add(scheduleId)
    return true
  }

  /** @returns false if the batch was refused because of one of its runs */
  async #write(batch: readonly Waiting[], writer: Writer): Promise<boolean> {
    const { signal } = this.#abandoned
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        this.#emit(batch, await this.#settle(batch))
        if (writer !== 'refused') this.#failuresOf(writer).succeeded()
        break
      } catch (error) {
        if (isOfOneRun(error)) {
          // The writer itself works: Postgres answered.
          if (writer !== 'refused') this.#failuresOf(writer).succeeded()
          this.#setApart(batch, error)
          return false
        }
        this.#failuresOf(writer).failed(error)
        await this.#deps.clock.sleep(pauseAfter(failures, PAUSE), signal)
      }
    }
    this.#finish(batch)
    return true
  }

  #setApart(batch: readonly Waiting[], error: unknown): void {
    const failures = this.#failuresOf('refused')
    failures.failed(error)
    this.#refused.push(...piecesOf(batch))
    if (!this.#isWritingRefused) failures.reportRejection(this.#writeRefused())
  }

  /** Writes a batch whose settlements have the same writer. */
  async #settle(batch: readonly Waiting[]): Promise<SettledBatch> {
    const { db, clock } = this.#deps
    const [first] = batch
    const settlements = batch.map(({ settlement }) => settlement)
    // A worker that lost its lease and got a new one has a new id. A batch from both leases needs an id per settlement.
    const isOfOneLease = batch.every(({ run }) => run.workerId === first?.run.workerId)
    if (first === undefined || this.#writerOf(first.settlement) !== 'lock-free' || !isOfOneLease) {
      return settleBatch(this.#deps, settlements)
    }
    try {
      const { workerId } = first.run
      const { settledAt, left } = await settleSuccesses(db, { settlements, workerId, now: clock.databaseNow() })
      const written = batch.filter((_, index) => !left.has(index)).map(({ run }) => succeeded(run, settledAt))
      // Fenced, completed from elsewhere, or to be settled under the schedule's lock because its overlap policy was edited:
      // settleBatch decides.
      const others = settlements.filter((_, index) => left.has(index))
      if (others.length === 0) return { runs: written, effects: [] }
      const rest = await settleBatch(this.#deps, others)
      return { ...rest, runs: [...written, ...rest.runs] }
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
      this.#failuresOf('refused').succeeded()
    } finally {
      this.#isWritingRefused = false
    }
  }

  #finish(batch: readonly Waiting[]): void {
    for (const { settlement, done } of batch) {
      this.#taken.delete(settlement.run.scheduleId)
      done()
    }
    // Further settlements of these schedules may be written now, by any writer.
    for (const batcher of this.#batchers.values()) batcher.wake()
  }

  #emit(batch: readonly Waiting[], settled: SettledBatch): void {
    const { events } = this.#deps
    const written = new Set(settled.runs.map(({ runId }) => runId))
    for (const { run } of batch) {
      const { runId, scheduleId, scheduledFor } = run
      if (!written.has(runId)) events.emit('attempt.fenced', { runId, scheduleId, scheduledFor })
    }
    emitSettled(events, settled)
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

function piecesOf<Item>(items: readonly Item[]): Item[][] {
  const size = Math.ceil(items.length / PIECES)
  return Array.from({ length: Math.ceil(items.length / size) }, (_, n) => items.slice(n * size, (n + 1) * size))
}
