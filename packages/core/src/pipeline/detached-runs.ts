import type { CadenceCache } from '../cadences/cadence-cache.ts'
import type { Db } from '../db/database.ts'
import { NOTIFY_WITHIN_MS } from '../db/notify.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import { Service } from '../kernel/service.ts'
import { endLanesOf } from '../policy/lane-names.ts'
import { NO_RETRY } from '../policy/retry.ts'
import type { SchedulePolicy } from '../policy/schedule-policy.ts'
import type { Target } from '../ports/target.ts'
import type { Hooks } from './hooks.ts'
import { batchesOf, settleAll, settleApart } from './settle.ts'
import { emitSettled, settlementOf } from './settlement.ts'
import { findDueDetached, findNextDetached, type DetachedRun } from './store/detached-runs.ts'
import type { Settlement } from './store/settle.ts'

export interface DetachedRunsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  readonly hooks: Hooks
  readonly targets: ReadonlyMap<string, Target>
  readonly cadences: Pick<CadenceCache, 'policy'>
}

export interface DetachedRunCounts {
  /** Runs that were settled. */
  readonly ended: number
  /** How long to sleep until something may be due. */
  readonly sleepMs: number
}

/** How many detached runs one batch settles at most. */
const BATCH_MAX = 500
/** How many batches one call of `runOnce` settles at most. */
const BATCHES_MAX = 20
const FAILURE_PAUSE_MS = 250
/** The pause before runs are tried again that were due and could not be settled: another worker holds their schedules. */
const HELD_PAUSE_MS = 25

/**
 * END: settles detached runs that were completed, are to be cancelled, or whose deadline has passed. It takes no room of the worker: nothing
 * is called. Every worker does so for the kinds that it serves, and the locks of the schedules share the work.
 */
export class DetachedRuns extends Service<DetachedRunCounts> {
  override readonly name = 'detached runs'
  readonly #deps: DetachedRunsDeps
  readonly #lanes: readonly string[]
  readonly #served: ReadonlySet<string>
  #wake = new AbortController()

  constructor(deps: DetachedRunsDeps) {
    super(deps, { firstMs: FAILURE_PAUSE_MS })
    this.#deps = deps
    this.#lanes = endLanesOf([...deps.targets.keys()])
    this.#served = new Set(this.#lanes)
  }

  /** Ends the sleep if the lane is one of those that this worker serves; '' stands for all lanes. */
  wake(lane: string): void {
    if (lane === '' || this.#served.has(lane)) this.#wake.abort()
  }

  async runOnce(): Promise<DetachedRunCounts> {
    const { db, clock } = this.#deps
    const failures: unknown[] = []
    let ended = 0
    let isLeft = false
    for (let batches = 0; batches < BATCHES_MAX; batches += 1) {
      const due = await findDueDetached(db, { lanes: this.#lanes, limit: BATCH_MAX, now: clock.databaseNow() })
      if (due.length === 0) {
        isLeft = false
        break
      }
      const settled = await this.#settle(due, failures)
      ended += settled
      isLeft = true
      // The schedules of the rest are held by another transaction.
      if (settled === 0) break
    }
    if (failures.length > 0) throw failures[0]
    if (isLeft) return { ended, sleepMs: ended > 0 ? 0 : HELD_PAUSE_MS }
    const nextMs = await findNextDetached(db, {
      lanes: this.#lanes,
      withinMs: NOTIFY_WITHIN_MS,
      now: clock.databaseNow(),
    })
    return { ended, sleepMs: nextMs ?? NOTIFY_WITHIN_MS }
  }

  protected override async rest({ sleepMs }: DetachedRunCounts, signal: AbortSignal): Promise<void> {
    const wake = this.#wake
    if (sleepMs > 0) await this.#deps.clock.sleep(sleepMs, AbortSignal.any([signal, wake.signal]))
    if (wake.signal.aborted) this.#wake = new AbortController()
  }

  async #settle(due: readonly DetachedRun[], failures: unknown[]): Promise<number> {
    const { hooks, events } = this.#deps
    // A batch settles at most one run per schedule, as `settleRuns` requires. The next batch finds the others.
    const batch = [...new Map(due.map((run) => [run.scheduleId, run])).values()]
    const onFailure = (error: unknown): void => void failures.push(error)
    const settled = await settleAll(
      batchesOf(
        hooks,
        batch.map((run) => this.#settlementOf(run)),
      ),
      (part) => settleApart(this.#deps, part, { ifHeld: 'leave', onFailure }),
    )
    emitSettled(events, settled)
    return settled.runs.length
  }

  /** As if the deadline had passed. Under the lock a completion or a cancellation decides instead, or a heartbeat keeps the run. */
  #settlementOf(run: DetachedRun): Settlement {
    const policy = this.#policyOf(run)
    const ending = { kind: 'timed_out', isRetried: this.#isRetried(run) } as const
    return settlementOf(run, ending, { retry: policy?.retry ?? NO_RETRY, held: 'detached' })
  }

  /** A run whose policy can no longer be read gets no further attempt. */
  #policyOf({ policy }: DetachedRun): SchedulePolicy | null {
    try {
      return this.#deps.cadences.policy(policy)
    } catch {
      return null
    }
  }

  #isRetried({ targetKind, target }: DetachedRun): boolean {
    const handler = this.#deps.targets.get(targetKind)
    if (handler?.isRetriedAtDeadline === undefined) return true
    try {
      const spec = handler.schema.safeParse(target)
      return !spec.success || handler.isRetriedAtDeadline(spec.data)
    } catch {
      return true
    }
  }
}
