import { CadenceCache } from '../../src/cadences/cadence-cache.ts'
import { createDb } from '../../src/db/database.ts'
import { createPool, type SeverablePool } from '../../src/db/pool.ts'
import { Events } from '../../src/kernel/events.ts'
import { Lease } from '../../src/kernel/lease.ts'
import { Heartbeat } from '../../src/pipeline/heartbeat.ts'
import { Hooks } from '../../src/pipeline/hooks.ts'
import type { Pipeline } from '../../src/pipeline/pipeline.ts'
import { Rescuer } from '../../src/pipeline/rescuer.ts'
import type { Target } from '../../src/ports/target.ts'
import { pipelineOf } from '../pipeline-parts.ts'
import { LossyProxy } from './lossy-proxy.ts'
import type { ModelClock } from './model-clock.ts'
import type { SeededRandom } from './seeded-random.ts'

/** The application name of the model's sessions. The sessions that check the model have another one. */
export const MODEL_SESSION = 'carillon model'

const HEARTBEAT_MS = 10_000

/** A worker whose connections break. The model decides when each part of it runs. */
export class ModelWorker {
  readonly proxy: LossyProxy
  readonly #pool: SeverablePool
  readonly #loop: Pipeline
  readonly #heartbeat: Heartbeat
  readonly #rescuer: Rescuer
  readonly #busy = new Map<string, Promise<void>>()
  /** As if stopped by SIGSTOP: it starts nothing, but calls that are under way may still be answered. */
  isFrozen = false

  private constructor(proxy: LossyProxy, clock: ModelClock, target: Target) {
    this.proxy = proxy
    this.#pool = createPool({
      connectionString: proxy.url,
      applicationName: MODEL_SESSION,
      role: 'carillon_worker',
      maxConnections: 8,
      isPrepared: true,
    })
    const events = new Events()
    const lease = new Lease(clock)
    const targets = new Map([[target.kind, target]])
    const hooks = new Hooks({ clock, events, targets })
    const deps = { db: createDb(this.#pool), clock, events, lease, targets, hooks }
    this.#loop = pipelineOf(deps, { concurrency: 20 })
    const onCancel = (runId: string): void => this.#loop.cancel(runId)
    const heartbeatOptions = { name: 'model', targetKinds: [target.kind], heartbeatMs: HEARTBEAT_MS }
    this.#heartbeat = new Heartbeat({ ...deps, failing: () => null, onCancel }, heartbeatOptions)
    this.#rescuer = new Rescuer(
      { ...deps, cadences: new CadenceCache(), targetKinds: [target.kind] },
      { periodMs: HEARTBEAT_MS },
    )
  }

  static async start(url: string, clock: ModelClock, target: Target, random: SeededRandom): Promise<ModelWorker> {
    return new ModelWorker(await LossyProxy.start(url, random), clock, target)
  }

  beat(): Promise<void> {
    return this.#once('beat', () => this.#heartbeat.runOnce())
  }

  /** Runs the pipeline loop once: begins due slots and takes waiting runs. */
  runLoop(): Promise<void> {
    return this.#once('loop', async () => {
      this.#loop.wake()
      await this.#loop.runOnce()
    })
  }

  rescue(): Promise<void> {
    return this.#once('rescue', () => this.#rescuer.runOnce())
  }

  /** Resolves once no attempt of this worker is under way. */
  whenIdle(): Promise<void> {
    return this.#loop.whenIdle()
  }

  /** Ends the worker as kill -9 would: it sends nothing more. */
  async die(): Promise<void> {
    this.proxy.close()
    await this.#loop.drain(0)
    await Promise.all(this.#busy.values())
    await this.#pool.end()
    await this.proxy[Symbol.asyncDispose]()
  }

  /** Runs each kind of work once at a time, as a worker does. An error is ignored if it comes from a broken connection. */
  #once(name: string, work: () => Promise<unknown>): Promise<void> {
    const before = this.#busy.get(name)
    if (before !== undefined || this.isFrozen) return before ?? Promise.resolve()
    const doing = work()
      .then(() => undefined)
      .catch(requireBroken)
      .finally(() => this.#busy.delete(name))
    this.#busy.set(name, doing)
    return doing
  }
}

/** Throws every error but that of a broken connection: it is a fault of the code. */
export function requireBroken(error: unknown): void {
  const text = error instanceof Error ? `${error.message} ${'code' in error ? String(error.code) : ''}` : String(error)
  const isBroken = /terminat|ECONN|EPIPE|closed|Client was|57P0|hang up|timeout|not queryable|40P01|40001|55P03/i.test(
    text,
  )
  if (!isBroken) throw error
}
