import { isUuid } from '@carillon/api'

import type { Db, Tx } from '../db/database.ts'
import { transactScoped } from '../db/transact.ts'
import { systemClock, type Clock } from '../kernel/clock.ts'
import type { CompletedAttempt, Completion, CompletionAnswer } from '../ports/runs.ts'
import type { Target } from '../ports/target.ts'
import { readCallbackToken } from './callback-token.ts'
import { completeRun, extendRun } from './completions.ts'
import { findCompletedRun, findTargetOfRun, isCallback } from './store/completions.ts'

export interface CallbacksDeps {
  readonly db: Db
  readonly clock?: Clock
  readonly targets: ReadonlyMap<string, Target>
}

export type HeartbeatAnswer =
  /** The run times out so many milliseconds from now, unless another heartbeat comes. */
  | { readonly kind: 'extended'; readonly deadlineMs: number }
  /** The run is not detached any more, was completed, or is to be cancelled. */
  | { readonly kind: 'conflict'; readonly state: string }
  | { readonly kind: 'unknown' }

/** Who completed a run by its token, for the ledger. */
const BY = 'callback'

/**
 * Completes runs for services that have no key, only the token of the run. A wrong token, a token of another run and a run that does not
 * exist are answered alike.
 */
export class Callbacks {
  readonly #deps: Required<CallbacksDeps>

  constructor({ clock = systemClock, ...deps }: CallbacksDeps) {
    this.#deps = { ...deps, clock }
  }

  complete(
    { runId, attempt, token }: CompletedAttempt & { readonly token: string },
    completion: Completion,
  ): Promise<CompletionAnswer> {
    const { clock } = this.#deps
    return this.#withRun(runId, token, (tx) =>
      completeRun(tx, { runId, attempt }, completion, { by: BY, now: clock.databaseNow() }),
    )
  }

  /** Moves the deadline of a detached run as far as its target says. */
  heartbeat({ runId, token }: { readonly runId: string; readonly token: string }): Promise<HeartbeatAnswer> {
    const { clock } = this.#deps
    return this.#withRun(runId, token, async (tx) => {
      const deadlineMs = this.#deadlineOf(await findTargetOfRun(tx, { runId }))
      const isExtended = deadlineMs !== undefined && (await extendRun(tx, { runId }, deadlineMs, clock.databaseNow()))
      if (isExtended) return { kind: 'extended', deadlineMs }
      const run = await findCompletedRun(tx, { runId, attempt: 1 })
      return run === undefined ? { kind: 'unknown' } : { kind: 'conflict', state: run.state }
    })
  }

  /** One transaction in the project of the run, if the token is that of the run. */
  async #withRun<Answer>(
    runId: string,
    text: string,
    work: (tx: Tx) => Promise<Answer>,
  ): Promise<Answer | { readonly kind: 'unknown' }> {
    const token = isUuid(runId) ? readCallbackToken(text) : undefined
    if (token === undefined) return { kind: 'unknown' }
    const { tenantId, projectId, mac } = token
    const { db, clock } = this.#deps
    return transactScoped(db, clock, { tenantId, projectId }, async (tx) => {
      const isOfRun = await isCallback(tx, { runId: runId.toLowerCase(), tenantId, projectId, mac })
      return isOfRun ? work(tx) : { kind: 'unknown' }
    })
  }

  #deadlineOf(stored: unknown): number | undefined {
    if (typeof stored !== 'object' || stored === null || !('kind' in stored)) return undefined
    const target = this.#deps.targets.get(String(stored.kind))
    const spec = target?.schema.safeParse(stored)
    return spec?.success === true ? target?.deadlineMs?.(spec.data) : undefined
  }
}
