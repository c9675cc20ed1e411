import type { Tx } from '../db/database.ts'
import type { Json } from '../kernel/json.ts'
import type { AttemptError } from './target.ts'

/** How the called side says that the work of a run is over. */
export type Completion =
  | { readonly outcome: 'succeeded'; readonly result?: Json }
  | { readonly outcome: 'failed'; readonly error: AttemptError; readonly retryable?: boolean }
  | { readonly outcome: 'cancelled' }

export type CompletionAnswer =
  /** Taken: a worker that serves the kind settles the run within milliseconds. */
  | { readonly kind: 'taken' }
  /** The same completion was taken before. */
  | { readonly kind: 'repeated' }
  /** Another completion was taken before, or the run ended or waits to be tried again. */
  | { readonly kind: 'conflict'; readonly state: string }
  /** There is no such run. */
  | { readonly kind: 'unknown' }

/** An attempt that the called side was asked to make. */
export interface CompletedAttempt {
  readonly runId: string
  readonly attempt: number
}

/** What modules and embedding applications do with runs. */
export interface RunsPort {
  /**
   * Completes a run that is detached, or whose attempt has not answered `accepted` yet. Writes one row, that of the run. It takes no lock
   * on the schedule and calls no hook: the pipeline writes what follows (attempt, retry, counters, `settled`). The first completion wins.
   *
   * `attempt` is the attempt that was asked to do the work: so a completion that is repeated after the next attempt began ends nothing.
   * It may be called with rows locked that `settled` writes. For several runs in one transaction, call it in the order of their ids.
   * @param tx null: a transaction of its own
   */
  complete(tx: Tx | null, attempt: CompletedAttempt, completion: Completion): Promise<CompletionAnswer>
  /**
   * Moves the deadline of a detached run to this many milliseconds from now.
   * @returns false if the run is not detached any more, was completed, or is to be cancelled
   */
  heartbeat(tx: Tx | null, run: { readonly runId: string }, deadlineMs: number): Promise<boolean>
}
