import { TRANSCRIPT_LINES_MAX } from '@carillon/api'

import type { HeldRun } from '../ledger/held-run.ts'
import type { TranscriptEntry } from '../ports/target.ts'
import type { NewTranscriptLine, TranscriptTotals } from './store/transcripts.ts'
import { entryText, ownEntryText } from './transcript-entry.ts'
import type { AttemptTranscript } from './transcript.ts'

/** A line that waits to be written. */
interface BufferedLine {
  readonly text: string
  readonly bytes: number
  /** By the monotonic clock. */
  readonly recordedAtMs: number
}

/** What the transcripts of all attempts of a worker share. */
export interface SharedBuffer {
  /** How many bytes of JSON the transcript of one run may have. */
  readonly runBytes: number
  nowMs(): number
  /** False if the worker buffers as much as it may already (I14). */
  hasRoom(bytes: number): boolean
  /** Counts memory that lines take, or with a negative number that they give back. */
  count(bytes: number): void
  /** Called when a line was buffered, with the bytes that wait. */
  onBuffered(lines: AttemptLines, waitingBytes: number): void
  /** Writes what is buffered, or gives up after a while. */
  flush(lines: AttemptLines): Promise<void>
}

/** What a line costs in memory besides its text. */
const LINE_OVERHEAD_BYTES = 200
/** How much of one transcript one statement writes, so that a statement for many runs stays small. */
const PART_BYTES = 65_536

/** The lines of one attempt, from `record` until they are written. */
export class AttemptLines implements AttemptTranscript {
  readonly run: HeldRun
  /** What earlier attempts at the run left; undefined until it was read. The first holder of a run has nothing to read. */
  earlier: TranscriptTotals | undefined
  /** True while the lines wait for their turn to be written. */
  isQueued = false
  readonly #shared: SharedBuffer
  #lines: BufferedLine[] = []
  #bufferedBytes = 0
  #writtenLines = 0
  #writtenBytes = 0
  /** How many lines were dropped since the last one that was buffered. */
  #dropped = 0
  /** True once nothing more is taken in: the attempt is over, or the transcript has reached its limit. */
  #isEnded = false
  #isTruncated = false

  constructor(run: HeldRun, shared: SharedBuffer) {
    this.run = run
    this.#shared = shared
    if (run.token === 1) this.earlier = { lines: 0, bytes: 0, isTruncated: false }
  }

  get waiting(): number {
    return this.#lines.length
  }

  record(entry: TranscriptEntry): void {
    // Past the limit a line that exceeds it is buffered already, and `next` replaces it by one that says so.
    const lines = this.#writtenLines + this.#lines.length
    if (this.#isEnded || this.#exceeds(lines, this.#writtenBytes + this.#bufferedBytes)) return
    const text = entryText(entry)
    if (!this.#shared.hasRoom(memoryOf(text))) {
      this.#dropped += 1
      return
    }
    this.#noteDropped()
    this.#add(text)
    this.#shared.onBuffered(this, this.#bufferedBytes)
  }

  async close(): Promise<void> {
    if (!this.#isEnded) this.#noteDropped()
    this.#isEnded = true
    if (this.waiting > 0) await this.#shared.flush(this)
  }

  /**
   * The lines to write next, numbered. The same lines again until they are `written`. From the line on that exceeds the limit of the run,
   * they are replaced by one that says so.
   */
  next(): NewTranscriptLine[] {
    this.#truncate()
    const now = this.#shared.nowMs()
    let bytes = 0
    const count = this.#lines.findIndex((line) => (bytes += line.bytes) > PART_BYTES)
    const part = count === -1 ? this.#lines : this.#lines.slice(0, Math.max(1, count))
    return part.map(({ text, recordedAtMs }, index) => ({
      seq: this.#writtenLines + index + 1,
      entry: text,
      ageMs: now - recordedAtMs,
    }))
  }

  /** Forgets the first lines: they are written. */
  written(count: number): void {
    const gone = this.#lines.splice(0, count)
    this.#writtenLines += gone.length
    this.#writtenBytes += this.#forget(gone)
  }

  /** Gives up the lines that wait, and takes in no more. Returns how many were dropped. */
  giveUp(): number {
    const gone = this.#lines
    this.#lines = []
    this.#isEnded = true
    this.#forget(gone)
    return gone.length
  }

  #truncate(): void {
    if (this.#isTruncated) return
    const { lines = 0, bytes = 0, isTruncated = false } = this.earlier ?? {}
    if (isTruncated) {
      this.giveUp()
      return
    }
    let [total, count] = [bytes + this.#writtenBytes, lines + this.#writtenLines]
    const first = this.#lines.findIndex((line) => this.#exceeds((count += 1), (total += line.bytes)))
    if (first === -1) return
    this.#isTruncated = true
    this.#isEnded = true
    this.#forget(this.#lines.splice(first))
    const limits = { maxBytes: this.#shared.runBytes, maxLines: TRANSCRIPT_LINES_MAX }
    const text = ownEntryText(
      'truncated',
      'the transcript has reached its limit: nothing after this line was kept',
      limits,
    )
    this.#add(text)
  }

  #exceeds(lines: number, bytes: number): boolean {
    return bytes > this.#shared.runBytes || lines >= TRANSCRIPT_LINES_MAX
  }

  /** Says how many lines are missing here. The line is kept even if the worker has no memory left for others. */
  #noteDropped(): void {
    if (this.#dropped === 0) return
    const text = ownEntryText('dropped', 'lines are missing here: the worker had too many to keep', {
      lines: this.#dropped,
    })
    this.#dropped = 0
    this.#add(text)
  }

  #add(text: string): void {
    const bytes = Buffer.byteLength(text)
    this.#bufferedBytes += bytes
    this.#shared.count(memoryOf(text))
    this.#lines.push({ text, bytes, recordedAtMs: this.#shared.nowMs() })
  }

  /** @returns how many bytes of JSON the lines have */
  #forget(gone: readonly BufferedLine[]): number {
    const bytes = gone.reduce((sum, line) => sum + line.bytes, 0)
    this.#bufferedBytes -= bytes
    this.#shared.count(-gone.reduce((sum, { text }) => sum + memoryOf(text), 0))
    return bytes
  }
}

function memoryOf(text: string): number {
  return text.length + LINE_OVERHEAD_BYTES
}
