import { isDeepStrictEqual } from 'node:util'

import type { Db, Tx } from '../db/database.ts'
import { notifyDue } from '../db/notify.ts'
import { transact } from '../db/transact.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Json } from '../kernel/json.ts'
import type { CompletedAttempt, Completion, CompletionAnswer, RunsPort } from '../ports/runs.ts'
import type { AttemptError } from '../ports/target.ts'
import { extendDeadline, findCompletedRun, storeCompletion, type CompletedRun } from './store/completions.ts'

export { readCallbackKey } from './store/completions.ts'

/** A completion as the row of its run holds it. */
export type StoredCompletion = Completion & {
  readonly attempt: number
  /** Who completed the run: `callback`, or the subject of the module or the caller. */
  readonly by: string
}

/** How often a completion is tried again because the run was taken in between. */
const TRIES_MAX = 5
/** A heartbeat writes at most once per this share of its deadline. */
const HEARTBEATS_PER_DEADLINE = 20

/** Completes a run: see `RunsPort.complete`. `now` is null in production: Postgres' clock decides. */
export async function completeRun(
  tx: Tx,
  { runId, attempt }: CompletedAttempt,
  completion: Completion,
  { by, now }: { readonly by: string; readonly now: Date | null },
): Promise<CompletionAnswer> {
  const text = JSON.stringify({ ...completion, attempt, by } satisfies StoredCompletion)
  for (let tries = 1; ; tries += 1) {
    const lane = await storeCompletion(tx, { runId, attempt, completion: text, now })
    if (lane !== undefined) {
      if (lane !== null) await notifyDue(tx, { lanes: [lane] })
      return { kind: 'taken' }
    }
    const run = await findCompletedRun(tx, { runId, attempt })
    if (run === undefined) return { kind: 'unknown' }
    const answer = answerOf(run, attempt, completion)
    if (answer !== undefined || tries >= TRIES_MAX) return answer ?? { kind: 'conflict', state: run.state }
  }
}

/** Moves the deadline of a detached run: see `RunsPort.heartbeat`. */
export async function extendRun(
  tx: Tx,
  { runId }: { readonly runId: string },
  deadlineMs: number,
  now: Date | null,
): Promise<boolean> {
  return extendDeadline(tx, { runId, deadlineMs, everyMs: deadlineMs / HEARTBEATS_PER_DEADLINE, now })
}

/** What modules do with runs, as a worker: across tenants. */
export class Runs implements RunsPort {
  readonly #db: Db
  readonly #clock: Clock
  readonly #by: string

  /** @param deps.by who completes runs through this port, for the ledger */
  constructor(deps: { readonly db: Db; readonly clock: Clock; readonly by: string }) {
    this.#db = deps.db
    this.#clock = deps.clock
    this.#by = deps.by
  }

  complete(tx: Tx | null, attempt: CompletedAttempt, completion: Completion): Promise<CompletionAnswer> {
    const options = { by: this.#by, now: this.#clock.databaseNow() }
    return this.#within(tx, (within) => completeRun(within, attempt, completion, options))
  }

  heartbeat(tx: Tx | null, run: { readonly runId: string }, deadlineMs: number): Promise<boolean> {
    return this.#within(tx, (within) => extendRun(within, run, deadlineMs, this.#clock.databaseNow()))
  }

  #within<Result>(tx: Tx | null, work: (tx: Tx) => Promise<Result>): Promise<Result> {
    return tx === null ? transact(this.#db, this.#clock, work) : work(tx)
  }
}

/** What the caller is answered if its completion was not stored; undefined if it should be tried again. */
function answerOf(run: CompletedRun, attempt: number, completion: Completion): CompletionAnswer | undefined {
  const { state } = run
  const taken = run.completion === null ? completionOf(run) : (run.completion as StoredCompletion)
  if (taken !== undefined) return isSame(taken, completion) ? REPEATED : { kind: 'conflict', state }
  const isAwaited = (state === 'running' || state === 'detached') && attempt <= run.attemptCount
  return isAwaited ? undefined : { kind: 'conflict', state }
}

const REPEATED: CompletionAnswer = { kind: 'repeated' }

/** The completion that ended the attempt, as far as the attempt shows it; undefined if no completion ended it. */
function completionOf({ outcome, result, error, isOverByCompletion }: CompletedRun): Completion | undefined {
  if (!isOverByCompletion) return undefined
  if (outcome === 'succeeded') return { outcome, result }
  return outcome === 'cancelled' ? { outcome } : { outcome: 'failed', error: error as unknown as AttemptError }
}

/** True if both say the same. Whether a failure may be retried does not count: an attempt that is over does not show it. */
function isSame(a: Completion, b: Completion): boolean {
  if (a.outcome !== b.outcome) return false
  if (a.outcome === 'succeeded' && b.outcome === 'succeeded') return isEqualJson(a.result ?? null, b.result ?? null)
  if (a.outcome === 'failed' && b.outcome === 'failed') return isEqualJson(a.error, b.error)
  return true
}

function isEqualJson(a: unknown, b: unknown): boolean {
  return isDeepStrictEqual(JSON.parse(JSON.stringify(a)) as Json, JSON.parse(JSON.stringify(b)) as Json)
}
