import { EventEmitter } from 'node:events'

import {
  Logger,
  parseCronItems,
  run,
  type Runner,
  type RunnerOptions,
  type TaskList,
  type WorkerEvents,
} from 'graphile-worker'

import type { Engine, JobHandlers } from '../engine.ts'
import type { Events } from '../events.ts'
import { JOBS_SCHEMA } from '../store/jobs-schema.ts'
import { attemptTask } from './slot-jobs.ts'

export interface GraphileEngineOptions {
  readonly pool: NonNullable<RunnerOptions['pgPool']>
  readonly events: Events
  /** The kinds of target this worker serves; it fetches no other job. */
  readonly targetKinds: readonly string[]
  /** Jobs handled at a time. A handler only takes a run and hands it on, so few suffice. @default 10 */
  readonly concurrency?: number
}

const CONCURRENCY_DEFAULT = 10
/**
 * A job whose time comes without an insert is found by polling, and every handler polls: twice a second was half of what a
 * worker with nothing to do was busy with.
 */
const POLL_INTERVAL_MS = 1000
/** Handlers end within milliseconds; one that does not is handed to another worker by the library. */
const SHUTDOWN_ABORT_MS = 5000

/**
 * Graphile Worker as the engine. Used for what it is good at, jobs that wait, and not for what it is not: its locks last
 * four hours and its completion is not fenced, so a handler writes nothing that the ledger has not fenced.
 */
export class GraphileEngine implements Engine {
  readonly #options: GraphileEngineOptions
  readonly #workerIds = new Set<string>()
  #runner: Runner | undefined

  constructor(options: GraphileEngineOptions) {
    this.#options = options
  }

  get workerIds(): readonly string[] {
    return [...this.#workerIds]
  }

  async start(handlers: JobHandlers): Promise<void> {
    if (this.#runner !== undefined) return
    const { pool, events, targetKinds, concurrency = CONCURRENCY_DEFAULT } = this.#options
    this.#runner = await run({
      pgPool: pool,
      schema: JOBS_SCHEMA,
      concurrency,
      pollInterval: POLL_INTERVAL_MS,
      noHandleSignals: true,
      gracefulShutdownAbortTimeout: SHUTDOWN_ABORT_MS,
      logger: new Logger(() => () => undefined),
      events: this.#listen(events),
      taskList: tasksOf(handlers, targetKinds),
      parsedCronItems: parseCronItems(
        Object.entries(handlers.upkeep).map(([task, { crontab }]) => ({ task: `upkeep.${task}`, match: crontab })),
      ),
    })
  }

  async stop(): Promise<void> {
    const runner = this.#runner
    this.#runner = undefined
    await runner?.stop()
    this.#workerIds.clear()
  }

  #listen(events: Events): WorkerEvents {
    const emitter: WorkerEvents = new EventEmitter()
    // A job is locked in the name of its pool.
    emitter.on('pool:create', ({ workerPool }) => this.#workerIds.add(workerPool.id))
    emitter.on('job:error', ({ error, job }) => {
      events.emit('service.failed', { service: `job ${job.task_identifier}`, error })
    })
    emitter.on('pool:listen:error', ({ error }) => events.emit('service.failed', { service: 'engine', error }))
    emitter.on('worker:fatalError', ({ error }) => events.emit('service.failed', { service: 'engine', error }))
    return emitter
  }
}

function tasksOf(handlers: JobHandlers, targetKinds: readonly string[]): TaskList {
  const attempt = (payload: unknown): Promise<void> => handlers.attempt(slotOf(payload))
  const upkeep = Object.entries(handlers.upkeep).map(([task, chore]) => [`upkeep.${task}`, () => chore.run()] as const)
  return Object.fromEntries([...targetKinds.map((kind) => [attemptTask(kind), attempt] as const), ...upkeep])
}

function slotOf(payload: unknown): { scheduleId: string; scheduledFor: number } {
  if (typeof payload === 'object' && payload !== null && 'scheduleId' in payload && 'scheduledFor' in payload) {
    const { scheduleId, scheduledFor } = payload
    if (typeof scheduleId === 'string' && typeof scheduledFor === 'string') {
      return { scheduleId, scheduledFor: Date.parse(scheduledFor) }
    }
  }
  throw new Error('expected a job of the scheduler, with scheduleId and scheduledFor')
}
