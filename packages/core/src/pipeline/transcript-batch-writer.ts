import type { Db } from '../db/database.ts'
import { isCausedByRow, sqlStateOf } from '../db/sqlstate.ts'
import type { Clock } from '../kernel/clock.ts'
import { pauseAfter, type FailureRecord } from '../kernel/failure-record.ts'
import { namingMissingMonths, withMonths } from '../ledger/lines.ts'
import type { AttemptLines } from './attempt-lines.ts'
import { findEarlierTotals, insertTranscripts, type PartOutcome, type TranscriptPart } from './store/transcripts.ts'

interface TranscriptBatchWriterDeps {
  readonly db: Db
  readonly clock: Clock
  readonly failures: FailureRecord
  /** Fires when nothing more is to be written. */
  readonly stopped: AbortSignal
  /** Gives up the lines of an attempt, and reports why. */
  readonly drop: (lines: AttemptLines, why: string, cause: unknown) => void
}

/** The pause after a batch that Postgres did not answer. It doubles with each further failure in a row. */
const PAUSE = { firstMs: 250 }

/** Writes the lines of several attempts with one statement. One attempt at fault does not hold up the others. */
export class TranscriptBatchWriter {
  readonly #deps: TranscriptBatchWriterDeps

  constructor(deps: TranscriptBatchWriterDeps) {
    this.#deps = deps
  }

  /** Returns once Postgres has answered, whatever it answered. An attempt that is given up meanwhile has no more lines to write. */
  async write(batch: readonly AttemptLines[]): Promise<void> {
    const { clock, failures: record, stopped: signal } = this.#deps
    for (let failures = 1; !signal.aborted && batch.some(({ waiting }) => waiting > 0); failures += 1) {
      try {
        await this.#writeOnce(batch.filter(({ waiting }) => waiting > 0))
        record.succeeded()
        return
      } catch (error) {
        if (isCausedByRow(error)) return this.#writeApart(batch, error)
        record.failed(error)
        await clock.sleep(pauseAfter(failures, PAUSE), signal)
      }
    }
  }

  /** Postgres refused the batch because of one of its attempts: the others must not wait for that one. */
  async #writeApart(batch: readonly AttemptLines[], error: unknown): Promise<void> {
    const [first] = batch
    const { drop, failures } = this.#deps
    if (batch.length > 1) for (const lines of batch) await this.write([lines])
    else if (first !== undefined && isRefusedForGood(error)) drop(first, 'refused by Postgres', error)
    else failures.failed(error)
  }

  async #writeOnce(batch: readonly AttemptLines[]): Promise<void> {
    const { db, clock } = this.#deps
    await this.#readEarlier(batch)
    const attempts = batch.flatMap((attempt) => {
      const lines = attempt.next()
      return lines.length === 0 ? [] : [{ attempt, part: { run: attempt.run, lines } satisfies TranscriptPart }]
    })
    if (attempts.length === 0) return
    const parts = attempts.map(({ part }) => part)
    const outcomes = await withMonths(
      () =>
        namingMissingMonths(
          parts.map(({ run }) => run),
          () => insertTranscripts(db, { parts, now: clock.databaseNow() }),
        ),
      (work) => work(db),
    )
    for (const [index, { attempt, part }] of attempts.entries()) finish(attempt, part, outcomes[index])
  }

  async #readEarlier(batch: readonly AttemptLines[]): Promise<void> {
    const unread = batch.filter(({ earlier }) => earlier === undefined)
    if (unread.length === 0) return
    const totals = await findEarlierTotals(this.#deps.db, { runs: unread.map(({ run }) => run) })
    for (const [index, lines] of unread.entries()) lines.earlier = totals[index]
  }
}

function finish(attempt: AttemptLines, { lines }: TranscriptPart, outcome: PartOutcome | undefined): void {
  if (outcome === 'written') attempt.written(lines.length)
  // The settlement is fenced as well, and reports it.
  if (outcome === 'fenced') attempt.giveUp()
}

/** True if the same lines would be refused again: because of their values or their size, not because of a lock or a time limit. */
function isRefusedForGood(error: unknown): boolean {
  return /^(22|23|54)/.test(sqlStateOf(error) ?? '')
}
