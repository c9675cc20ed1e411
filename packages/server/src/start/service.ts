import { VERSION } from '@carillon/core'
import type { Logger } from 'pino'

import type { Metrics } from './metrics.ts'
import { ServiceError } from './service-error.ts'
import { surviveRejections, type HostProcess } from './unhandled-rejections.ts'

/** A started service. */
export interface RunningService {
  /** The URL from this machine; empty for a worker that does not listen. */
  readonly url: string
  /** A link that signs one browser in, once, within 15 minutes. Null for a worker. */
  readonly signInUrl: string | null
  /** Null if the service keeps nothing on this machine. */
  readonly dataDir: string | null
  /** The port of the embedded Postgres; null if DATABASE_URL names another. */
  readonly postgresPort: number | null
  /** The folder of the copy of Postgres that it runs, and why it runs a copy; null if it runs none. */
  readonly copiedProgram: { readonly folder: string; readonly reason: string } | null
  /** True if the database was empty before. */
  readonly isFirstStart: boolean
  /** Reports not ready, lets running work end within 30 seconds, and stops. Safe to call twice. */
  stop(): Promise<void>
}

export interface StartOptions {
  /** Cancels the start: everything started so far is stopped, and the start throws ServiceError `stopped`. */
  readonly signal?: AbortSignal
  /** @default JSON lines on stderr, from the level of the settings on */
  readonly logger?: Logger
  /**
   * Set it to Node's `process` if the process does nothing but run this service: an unhandled rejection is then logged and
   * counted, and does not end the process. @default Node's own behaviour
   */
  readonly process?: HostProcess
}

/** Collects how the parts of a service stop. They stop in the reverse order of their start. */
export interface StartUp {
  /** Called when the service stops, or at once if the start fails. */
  defer(stop: () => Promise<void> | void): void
  /** Throws if a stop was requested meanwhile. Called wherever the start can still be abandoned. */
  checkpoint(): void
}

interface StartUpOptions {
  /** For the log. */
  readonly name: 'everything' | 'server' | 'worker'
  readonly logger: Logger
  readonly metrics: Metrics
  readonly options: StartOptions
}

/** Starts a service part by part. If a part fails, the parts before it are stopped, and nothing is left running. */
export async function startUp<Built extends { readonly url: string }>(
  { name, logger, metrics, options }: StartUpOptions,
  build: (start: StartUp) => Promise<Built>,
): Promise<Built & { stop(): Promise<void> }> {
  const { signal, process } = options
  const parts = new AsyncDisposableStack()
  const checkpoint = (): void => {
    if (signal?.aborted === true) throw new ServiceError('stopped', 'stopped while starting: nothing is left running')
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

/** Stops all parts. Errors are only logged, because the caller throws the reason why the start failed. */
async function stopParts(parts: AsyncDisposableStack, logger: Logger): Promise<void> {
  try {
    await parts.disposeAsync()
  } catch (error) {
    logger.warn({ event: 'service.not_cleared_away', error }, 'a part of the service failed to stop')
  }
}
