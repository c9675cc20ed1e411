import { VERSION } from '@carillon/core'
import type { Logger } from 'pino'

import type { Metrics } from './metrics.ts'
import { OperatorError } from './operator-error.ts'
import { surviveRejections, type HostProcess } from './unhandled-rejections.ts'

/** What was started in this process: a server, a worker, or both with their Postgres. */
export interface RunningCarillon {
  /** The URL at which programs on this machine reach it; empty for a worker that does not listen. */
  readonly url: string
  /** A link that signs one browser in, once, within 15 minutes. Null for a worker. */
  readonly signInUrl: string | null
  /** The data directory; null if nothing is stored on this machine. */
  readonly dataDir: string | null
  /** The port of the embedded Postgres; null if this process starts none. */
  readonly postgresPort: number | null
  /** If the embedded Postgres runs from a copy of its program: the folder of the copy, and why it was made. Null otherwise. */
  readonly copiedProgram: { readonly folder: string; readonly reason: string } | null
  /** True if this start found an empty database. */
  readonly isFirstStart: boolean
  /** Reports not ready, lets running work end within 30 seconds, and stops. Safe to call twice. */
  stop(): Promise<void>
}

export interface StartOptions {
  /** Cancels the start: everything started so far is stopped, and the start throws OperatorError `stopped`. */
  readonly signal?: AbortSignal
  /** @default JSON lines on stderr, from the level of the settings on */
  readonly logger?: Logger
  /**
   * Set it to Node's `process` if the process does nothing but run Carillon: an unhandled rejection is then logged and
   * counted, and does not end the process. @default Node's own behaviour
   */
  readonly process?: HostProcess
}

/** Collects the functions that stop the started parts. The parts stop in the reverse order of their start. */
export interface StartUp {
  /** Registers `stop`, which is called when Carillon stops, or at once if the start fails. */
  defer(stop: () => Promise<void> | void): void
  /** Throws if a stop was requested meanwhile. Call it wherever the start can still be abandoned. */
  checkpoint(): void
}

interface StartUpOptions {
  /** Names in the log what starts and stops. */
  readonly name: 'everything' | 'server' | 'worker'
  readonly logger: Logger
  readonly metrics: Metrics
  readonly options: StartOptions
}

/** Starts part by part what `build` describes. If a part fails, the parts before it are stopped, and nothing is left running. */
export async function startUp<Built extends { readonly url: string }>(
  { name, logger, metrics, options }: StartUpOptions,
  build: (start: StartUp) => Promise<Built>,
): Promise<Built & { stop(): Promise<void> }> {
  const { signal, process } = options
  const parts = new AsyncDisposableStack()
  const checkpoint = (): void => {
    if (signal?.aborted === true) throw new OperatorError('stopped', 'stopped while starting: nothing is left running')
  }
  try {
    checkpoint()
    if (process !== undefined) surviveRejections(process, { logger, meter: metrics.meter })
    parts.defer(() => logger.info({ event: 'service.stopped', name }, 'service stopped'))
    const built = await build({ defer: (stop) => parts.defer(stop), checkpoint })
    checkpoint()
    parts.defer(() => logger.info({ event: 'service.stopping', name }, 'service stopping'))
    logger.info({ event: 'service.started', name, version: VERSION, url: built.url }, 'service started')
    let stopped: Promise<void> | undefined
    return { ...built, stop: () => (stopped ??= parts.disposeAsync()) }
  } catch (error) {
    await stopParts(parts, logger)
    throw error
  }
}

/** Stops all parts. Logs errors instead of throwing them, because the caller throws the reason why the start failed. */
async function stopParts(parts: AsyncDisposableStack, logger: Logger): Promise<void> {
  try {
    await parts.disposeAsync()
  } catch (error) {
    logger.warn({ event: 'service.stop_failed', error }, 'a part of the process failed to stop')
  }
}
