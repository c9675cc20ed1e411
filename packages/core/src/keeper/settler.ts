import type { Clock } from '../clock.ts'
import type { Jobs } from '../engine.ts'
import type { Events } from '../events.ts'
import { settleBatch, type PendingSettlement } from '../settle-batch.ts'
import type { Db } from '../store/database.ts'
import type { Settled, Settlement } from '../store/settle.ts'

export interface SettlerDeps {
  readonly db: Db
  readonly clock: Clock
  readonly jobs: Jobs
  readonly events: Events
}

interface Waiting extends PendingSettlement {
  readonly runId: string
  readonly done: () => void
}

const BATCH_MAX = 1000
const RETRY_PAUSE_MS = 250

/**
 * SETTLE, in micro-batches: while one is being written the next one gathers, so a lone attempt is settled at once and a
 * herd a thousand at a time. A batch that cannot be written is tried until it can: its fence makes a second write of the
 * same settlement do nothing, also where the answer to the first commit was lost.
 */
export class Settler {
  readonly #deps: SettlerDeps
  #waiting: Waiting[] = []
  #isWriting = false
  #isAbandoned = false

  constructor(deps: SettlerDeps) {
    this.#deps = deps
  }

  /** Resolves once the settlement is written, or found to be no longer this worker's to write. */
  settle(runId: string, pending: PendingSettlement): Promise<void> {
    return new Promise((done) => {
      this.#waiting.push({ ...pending, runId, done })
      if (!this.#isWriting) void this.#write()
    })
  }

  /** Gives up what cannot be written; the rescuer of another worker will find it. */
  abandon(): void {
    this.#isAbandoned = true
  }

  async #write(): Promise<void> {
    this.#isWriting = true
    // One turn of the event loop: what was dispatched together settles together.
    await Promise.resolve()
    while (this.#waiting.length > 0) {
      const batch = this.#takeBatch()
      await this.#writeUntilDone(batch)
      for (const { done } of batch) done()
    }
    this.#isWriting = false
  }

  /** At most one per schedule: the counters of a schedule follow its runs one by one. */
  #takeBatch(): Waiting[] {
    const batch = new Map<string, Waiting>()
    const later: Waiting[] = []
    for (const waiting of this.#waiting) {
      const { scheduleId } = waiting.settlement
      if (batch.size < BATCH_MAX && !batch.has(scheduleId)) batch.set(scheduleId, waiting)
      else later.push(waiting)
    }
    this.#waiting = later
    return [...batch.values()]
  }

  async #writeUntilDone(batch: readonly Waiting[]): Promise<void> {
    const { clock, events } = this.#deps
    while (!this.#isAbandoned) {
      try {
        this.#tell(batch, await settleBatch(this.#deps, batch))
        return
      } catch (error) {
        events.emit('service.failed', { service: 'settler', error })
        await clock.sleep(RETRY_PAUSE_MS)
      }
    }
  }

  #tell(batch: readonly Waiting[], settled: readonly Settled[]): void {
    const { events } = this.#deps
    const written = new Map(settled.map((run) => [run.runId, run]))
    for (const { runId, settlement } of batch) {
      const run = written.get(runId)
      if (run === undefined) tellFenced(events, runId, settlement)
      else tellSettled(events, run)
    }
  }
}

function tellFenced(events: Events, runId: string, { scheduleId, scheduledFor }: Settlement): void {
  events.emit('attempt.fenced', { runId, scheduleId, scheduledFor })
}

/** Tells what was settled. Also for the rescuer, which settles for the dead. */
function tellSettled(events: Events, run: Settled): void {
  const { tenantId, projectId, scheduleId, targetKind, scheduledFor, runId, attempt, state, retryAt } = run
  events.emit('attempt.settled', {
    tenantId,
    projectId,
    scheduleId,
    targetKind,
    scheduledFor,
    runId,
    attempt,
    state,
    retryAt,
    durationMs: run.settledAt - run.startedAt,
  })
  if (run.isAutoPaused) {
    const reason = 'auto:consecutive_failures'
    events.emit('schedule.paused', { tenantId, projectId, scheduleId, actor: 'system:carillon', reason })
  }
}
