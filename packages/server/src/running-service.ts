import type { Logger } from 'pino'

import type { FaultyProcess } from './unhandled-rejections.ts'

/** A service that was started, until it is stopped. */
export interface RunningService {
  /** Where it is reached from this machine; empty for a worker that listens nowhere. */
  readonly url: string
  /** Signs one browser in, once, within 15 minutes. Null where there is nothing to see. */
  readonly signInUrl: string | null
  /** Null if it keeps nothing on this machine. */
  readonly dataDir: string | null
  /** Of the Postgres that it brought; null if it brought none. */
  readonly postgresPort: number | null
  /** The folder of the copy of Postgres that it runs, and why it runs a copy; null if it runs none. */
  readonly copiedProgram: { readonly folder: string; readonly reason: string } | null
  /** Whether the database was empty before. */
  readonly isFirstStart: boolean
  /** Is sent no more work, lets what is under way end within 30 seconds, and leaves. Safe to call twice. */
  stop(): Promise<void>
}

export interface StartOptions {
  /** Calls the start off: it ends what it has started, and throws ServiceError `stopped`. */
  readonly signal?: AbortSignal
  /** @default lines of JSON on stderr, from the level of the settings on */
  readonly logger?: Logger
  /**
   * The process, if it does nothing but run this service: from now on a rejected promise that nobody handles is logged and
   * counted, and does not end it. @default Node's own behaviour
   */
  readonly process?: FaultyProcess
}
