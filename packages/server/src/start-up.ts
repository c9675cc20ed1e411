import { VERSION } from '@carillon/core'
import type { Logger } from 'pino'

import { ServiceError } from './service-error.ts'

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
  readonly signal: AbortSignal | undefined
}

/** Builds a service part by part. Should a part fail, those before it are ended, and nothing is left running. */
export async function startUp<Built extends { readonly url: string }>(
  { name, logger, signal }: StartUpOptions,
  build: (start: StartUp) => Promise<Built>,
): Promise<Built & { stop(): Promise<void> }> {
  const parts = new AsyncDisposableStack()
  const checkpoint = (): void => {
    if (signal?.aborted === true) throw new ServiceError('stopped', 'stopped while starting: nothing is left running')
  }
  try {
    checkpoint()
    parts.defer(() => logger.info({ event: 'service.stopped', name }, 'service stopped'))
    const built = await build({ defer: (end) => parts.defer(end), checkpoint })
    checkpoint()
    parts.defer(() => logger.info({ event: 'service.stopping', name }, 'service stopping'))
    logger.info({ event: 'service.started', name, version: VERSION, url: built.url }, 'service started')
    let stopped: Promise<void> | undefined
    return { ...built, stop: () => (stopped ??= parts.disposeAsync()) }
  } catch (error) {
    await endQuietly(parts)
    throw error
  }
}

/** Why the start failed is what counts, not what went wrong while it was cleared away. */
async function endQuietly(parts: AsyncDisposableStack): Promise<void> {
  try {
    await parts.disposeAsync()
  } catch {
    // All parts were tried; there is nothing left to do.
  }
}
