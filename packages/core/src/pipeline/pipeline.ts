import { CadenceCache } from '../cadences/cadence-cache.ts'
import type { Db } from '../db/database.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import type { MonitoredPart } from '../kernel/failure-record.ts'
import type { Lease } from '../kernel/lease.ts'
import type { Service } from '../kernel/service.ts'
import type { HeldRun } from '../ledger/held-run.ts'
import type { AuthorizationPort } from '../ports/authorization.ts'
import type { Callback, Target } from '../ports/target.ts'
import { DetachedRuns } from './detached-runs.ts'
import { Dispatcher } from './dispatcher.ts'
import type { Hooks } from './hooks.ts'
import { InDoubtCommits } from './in-doubt-commits.ts'
import { PipelineLoop, type PipelineLoopCounts } from './loop.ts'
import { PermissionChecker } from './permissions.ts'
import { SettleQueue } from './settle-queue.ts'
import type { Transcripts } from './transcript.ts'

export interface PipelineDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  readonly lease: Lease
  readonly targets: ReadonlyMap<string, Target>
  readonly hooks: Hooks
  readonly transcripts: Transcripts
  /** Where the called side completes the attempt of a run. */
  readonly callback: (run: HeldRun) => Callback
  /**
   * Asked before each attempt, in addition to the project's member list, whether the schedule's owner and the grant's subject still
   * have access. @default the member list alone decides
   */
  readonly authorization?: AuthorizationPort | undefined
}

export interface PipelineOptions {
  /** How many runs this worker holds at most. @default `CONCURRENCY_DEFAULT` */
  readonly concurrency?: number
  /** How many schedules one transaction begins at most. @default that of the loop */
  readonly batchSize?: number
  /** For how long the ledger keeps its lines. */
  readonly retentionMs: number
}

const CONCURRENCY_DEFAULT = 200
/**
 * How long a drain goes on after its grace period, to write which runs it hands back. The rescuer of another worker finds the runs that
 * it could not hand back by then.
 */
const HAND_BACK_MS = 4000

/** The loops of a worker and what they share: the runs that the worker holds, and the queue that settles them. */
export class Pipeline {
  readonly #clock: Clock
  readonly #dispatcher: Dispatcher
  readonly #settleQueue: SettleQueue
  readonly #inDoubt: InDoubtCommits
  readonly #loops: readonly PipelineLoop[]
  readonly #detached: DetachedRuns
  /** Each of them can fail while the loops and the others go on. */
  readonly parts: readonly MonitoredPart[]

  constructor(deps: PipelineDeps, { concurrency = CONCURRENCY_DEFAULT, batchSize, retentionMs }: PipelineOptions) {
    const { clock, lease, targets, hooks } = deps
    this.#clock = clock
    const cadences = new CadenceCache()
    const claims = new Set<Promise<unknown>>()
    const checker = new PermissionChecker(deps)
    const settleQueue = new SettleQueue(deps)
    const dispatcher = new Dispatcher({ ...deps, concurrency, checker, settleQueue, cadences })
    const inDoubt = new InDoubtCommits({ ...deps, held: () => dispatcher.held, claims })
    this.#settleQueue = settleQueue
    this.#dispatcher = dispatcher
    this.#inDoubt = inDoubt
    const loopDeps = { ...deps, cadences, dispatcher, inDoubt, claims }
    this.#loops = loopKinds([...targets.keys()], hooks).map(
      (kinds) => new PipelineLoop(loopDeps, { ...kinds, batchSize, retentionMs }),
    )
    this.#detached = new DetachedRuns({ ...deps, cadences })
    this.parts = [settleQueue, checker, dispatcher, inDoubt]
    lease.onLost(() => dispatcher.abortAll('lease_lost'))
  }

  /** In the order in which they start. */
  get services(): readonly Service<unknown>[] {
    return [...this.#loops, this.#detached]
  }

  get inFlight(): number {
    return this.#dispatcher.inFlight
  }

  /** How long ago this worker was full: 0 if it is full now, null if it never was. */
  get fullMsAgo(): number | null {
    return this.#dispatcher.fullMsAgo
  }

  start(): void {
    for (const service of this.services) service.start()
  }

  /** Stops claiming. Runs in flight go on. */
  async stop(): Promise<void> {
    await Promise.all(this.services.map((service) => service.stop()))
  }

  /** Looks once in each loop, and settles detached runs that are due. Does not wait for runs to end: see `whenIdle`. */
  async runOnce(): Promise<Pick<PipelineLoopCounts, 'begun' | 'skipped' | 'taken'> & { readonly ended: number }> {
    const counts = { begun: 0, skipped: 0, taken: 0, ended: 0 }
    for (const loop of this.#loops) {
      const { begun, skipped, taken } = await loop.runOnce()
      counts.begun += begun
      counts.skipped += skipped
      counts.taken += taken
    }
    counts.ended = (await this.#detached.runOnce()).ended
    return counts
  }

  /**
   * Ends the sleep of the loop that serves a lane: something comes due sooner than the last look saw.
   * @param lane @default all lanes
   */
  wake(lane = ''): void {
    for (const loop of this.#loops) loop.wake(lane)
    this.#detached.wake(lane)
  }

  cancel(runId: string): void {
    this.#dispatcher.abort(runId, 'cancel')
  }

  /** Looks for runs that the ledger says this worker holds but the worker does not know, and hands them back. */
  checkInDoubt(): Promise<number> {
    return this.#inDoubt.check()
  }

  whenIdle(): Promise<void> {
    return this.#dispatcher.whenIdle()
  }

  /**
   * Stops claiming for good, gives running runs the grace period to end, and hands the rest back without charging an attempt, so
   * that another worker takes them at once. If the database does not answer, it gives up `HAND_BACK_MS` after the grace period.
   */
  async drain(graceMs: number): Promise<void> {
    const givenUp = Promise.withResolvers<void>()
    const stopHandBack = this.#dispatcher.handBackAfter(graceMs)
    const stopTimer = this.#clock.after(graceMs + HAND_BACK_MS, () => {
      this.#inDoubt.abandon()
      this.#settleQueue.abandon()
      givenUp.resolve()
    })
    const idle = this.stop().then(() => this.#dispatcher.whenIdle())
    await Promise.race([idle.then(() => this.#inDoubt.stop()), givenUp.promise])
    stopHandBack()
    stopTimer()
  }
}

/** The kinds of each loop: one loop for all kinds without hooks, and one for each kind with hooks. */
function loopKinds(
  kinds: readonly string[],
  hooks: Hooks,
): { readonly kinds: readonly string[]; readonly hookedKind: string | null }[] {
  const plain = kinds.filter((kind) => !hooks.kinds.has(kind))
  const hooked = kinds.filter((kind) => hooks.kinds.has(kind))
  const loops = hooked.map((kind) => ({ kinds: [kind], hookedKind: kind as string | null }))
  return plain.length === 0 && loops.length > 0 ? loops : [{ kinds: plain, hookedKind: null }, ...loops]
}
