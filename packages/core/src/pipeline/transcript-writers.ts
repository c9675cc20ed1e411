import { expectedText, TRANSCRIPT_BYTES } from '@carillon/api'

import type { Db } from '../db/database.ts'
import { Batcher } from '../kernel/batcher.ts'
import type { Clock } from '../kernel/clock.ts'
import { invalidInput } from '../kernel/errors.ts'
import type { Events } from '../kernel/events.ts'
import { FailureRecord, FORGET_AFTER_MS, type MonitoredPart, type ServiceFailure } from '../kernel/failure-record.ts'
import type { HeldRun } from '../ledger/held-run.ts'
import { AttemptLines } from './attempt-lines.ts'
import { TranscriptBatchWriter } from './transcript-batch-writer.ts'
import type { AttemptTranscript, Transcripts } from './transcript.ts'

export interface TranscriptWritersDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
}

export interface TranscriptWritersOptions {
  /** How many bytes of JSON the transcript of one run may have, over all attempts. @default `TRANSCRIPT_BYTES.default` */
  readonly runBytes?: number
  /** How many bytes this worker buffers for all runs together. @default `BUFFER_BYTES` */
  readonly bufferBytes?: number
}

/** Lines are written at the latest this long after they were recorded… */
const FLUSH_AFTER_MS = 250
/** … or as soon as an attempt has so many bytes of them. */
const FLUSH_FROM_BYTES = 16_384
/** How long the settlement of an attempt waits for its lines. Less than a drain has left for the runs that it hands back. */
const CLOSE_LIMIT_MS = 2000
/** How many bytes a worker buffers, while Postgres is away or slow: 200 runs that record as much as they may need 50 MB. */
const BUFFER_BYTES = 33_554_432
/** How many attempts one statement writes lines of. */
const BATCH_MAX = 64

/**
 * Writes the transcripts of all attempts of a worker, those that have lines at the same time in one statement. A target never waits for
 * it, and the settlement of an attempt waits a limited time: after that the lines are dropped, and this part fails.
 */
export class TranscriptWriters implements Transcripts, MonitoredPart {
  readonly name = 'transcripts'
  readonly #deps: TranscriptWritersDeps
  readonly #failures: FailureRecord
  readonly #batcher: Batcher<AttemptLines>
  readonly #batchWriter: TranscriptBatchWriter
  readonly #runBytes: number
  readonly #bufferBytes: number
  #bufferedBytes = 0
  /** Attempts whose lines wait for the timer. */
  readonly #later = new Set<AttemptLines>()
  #stopTimer: (() => void) | undefined
  /** Attempts that are over, each with what ends the wait for its lines. */
  readonly #closing = new Map<AttemptLines, () => void>()
  readonly #stopped = new AbortController()

  /** @throws CarillonError `invalid_input` for a `runBytes` outside of `TRANSCRIPT_BYTES` */
  constructor(deps: TranscriptWritersDeps, options: TranscriptWritersOptions = {}) {
    this.#deps = deps
    this.#runBytes = checkedRunBytes(options.runBytes)
    this.#bufferBytes = options.bufferBytes ?? BUFFER_BYTES
    this.#failures = new FailureRecord(deps, this, FORGET_AFTER_MS)
    this.#batchWriter = new TranscriptBatchWriter({
      ...deps,
      failures: this.#failures,
      stopped: this.#stopped.signal,
      drop: (lines, why, cause) => this.#drop(lines, why, cause),
    })
    this.#batcher = new Batcher({
      batchMax: BATCH_MAX,
      write: (batch) => this.#write(batch),
      onRejection: (error) => this.#failures.failed(error),
    })
  }

  get failure(): ServiceFailure | undefined {
    return this.#failures.failure
  }

  open(run: HeldRun): AttemptTranscript {
    const { clock } = this.#deps
    return new AttemptLines(run, {
      runBytes: this.#runBytes,
      nowMs: () => clock.monotonicMs(),
      hasRoom: (bytes) => this.#bufferedBytes + bytes <= this.#bufferBytes,
      count: (bytes) => {
        this.#bufferedBytes += bytes
      },
      onBuffered: (lines, waitingBytes) =>
        waitingBytes >= FLUSH_FROM_BYTES ? this.#writeNow(lines) : this.#writeLater(lines),
      flush: (lines) => this.#flush(lines),
    })
  }

  /** Writes nothing more. Called when the runs of the worker have ended. */
  stop(): void {
    this.#stopped.abort()
    this.#stopTimer?.()
  }

  #writeNow(lines: AttemptLines): void {
    if (lines.isQueued) return
    lines.isQueued = true
    this.#batcher.add(lines)
  }

  #writeLater(lines: AttemptLines): void {
    if (this.#stopped.signal.aborted) return
    this.#later.add(lines)
    this.#stopTimer ??= this.#deps.clock.after(FLUSH_AFTER_MS, () => {
      this.#stopTimer = undefined
      for (const due of this.#later) this.#writeNow(due)
      this.#later.clear()
    })
  }

  #flush(lines: AttemptLines): Promise<void> {
    return new Promise((resolve) => {
      const stopTimer = this.#deps.clock.after(CLOSE_LIMIT_MS, () => {
        this.#drop(lines, `not written within ${CLOSE_LIMIT_MS / 1000} seconds`)
        this.#goOn(lines)
      })
      this.#closing.set(lines, () => {
        stopTimer()
        resolve()
      })
      this.#writeNow(lines)
    })
  }

  #drop(lines: AttemptLines, why: string, cause?: unknown): void {
    const count = lines.giveUp()
    if (count === 0) return
    const what = count === 1 ? '1 line' : `${count} lines`
    const message = `dropped ${what} of the transcript of run ${lines.run.runId}: ${why}`
    this.#failures.failed(new Error(message, { cause }))
  }

  async #write(batch: readonly AttemptLines[]): Promise<void> {
    // What is recorded from now on is not in this batch.
    for (const lines of batch) lines.isQueued = false
    const before = batch.map(({ waiting }) => waiting)
    await this.#batchWriter.write(batch)
    for (const [index, lines] of batch.entries()) this.#goOn(lines, lines.waiting < (before[index] ?? 0))
  }

  /** Ends the wait for an attempt without lines, or sees to it that the rest is written: soon if another transaction holds its run. */
  #goOn(lines: AttemptLines, isProgress = false): void {
    const end = this.#closing.get(lines)
    if (lines.waiting > 0) {
      if (end !== undefined && isProgress) this.#writeNow(lines)
      else this.#writeLater(lines)
    } else if (end !== undefined) {
      this.#closing.delete(lines)
      end()
    }
  }
}

function checkedRunBytes(bytes: number = TRANSCRIPT_BYTES.default): number {
  const { min, max } = TRANSCRIPT_BYTES
  if (Number.isSafeInteger(bytes) && bytes >= min && bytes <= max) return bytes
  const message = expectedText(`a whole number from ${min} to ${max}`, bytes)
  throw invalidInput([{ path: 'transcriptBytes', message }])
}
