import { VERSION } from '@carillon/core'
import type { Logger } from 'pino'

import type { Metrics } from './metrics.ts'
import type { StartOptions } from './running-service.ts'
import { ServiceError } from './service-error.ts'
import { surviveRejections } from './unhandled-rejections.ts'

/** What a start is made of: each part says how it ends, and the latest ends first. */
export interface StartUp {
  /** Ends with the service, or at once if the start fails. */
  defer(end: () => Promise<void> | void): void
  /** Throws if somebody asked for a stop meanwhile. To be called wherever the start can still be left. */
  checkpoint(): void
}

interface StartUpOptions {
  /** What is started, for the log. */
  readonly name: 'everything' | 'server' | 'worker'
  readonly logger: Logger
  readonly metrics: Metrics
  readonly options: StartOptions
}

/** Builds a service part by part. Should a part fail, those before it are ended, and nothing is left running. */
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
    const built = await build({ defer: (end) => parts.defer(end), checkpoint })
    checkpoint()
    parts.defer(() => logger.info({ event: 'service.stopping', name }, 'service stopping'))
    logger.info({ event: 'service.started', name, version: VERSION, url: built.url }, 'service started')
    let stopped: Promise<void> | undefined
    return { ...built, stop: () => (stopped ??= parts.disposeAsync()) }
  } catch (error) {
    await clearAway(parts, logger)
    throw error
  }
}

/** Why the start failed is what counts; what went wrong while it was cleared away is only logged. All parts are tried. */
async function clearAway(parts: AsyncDisposableStack, logger: Logger): Promise<void> {
  try {
    await parts.disposeAsync()
  } catch (error) {
    logger.warn({ event: 'service.not_cleared_away', error }, 'a part of the service did not end in order')
  }
}
