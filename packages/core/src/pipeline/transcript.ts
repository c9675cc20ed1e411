import type { HeldRun } from '../ledger/held-run.ts'
import type { TranscriptEntry } from '../ports/target.ts'

/** Appends to the transcript of one attempt. What is recorded after `close` is dropped. */
export interface AttemptTranscript {
  /** Returns at once and never throws. */
  record(entry: TranscriptEntry): void
  /** Resolves once what is buffered is written, or given up. Called before the attempt is settled. Never throws. */
  close(): Promise<void>
}

/** Opens the transcripts of attempts. */
export interface Transcripts {
  open(run: HeldRun): AttemptTranscript
}
