import type { Clock } from '@carillon/core'
import { PostgresError, type RestartListener } from '@carillon/postgres'
import type { Logger } from 'pino'

interface RestartLogDeps {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly logger: Pick<Logger, 'info' | 'warn'>
}

/** How often a server that does not start is told of again, though nothing has changed. */
const REPEAT_MS = 60_000
const LINES_MAX = 10

/** Writes a line when the embedded Postgres ends without being asked to, while it does not start, and when it is back. */
export class RestartLog implements RestartListener {
  readonly #deps: RestartLogDeps
  /** Undefined while it runs. */
  #endedAt: number | undefined
  /** The last failure that was told of. */
  #told: { readonly at: number; readonly reason: string; readonly retryInMs: number } | undefined

  constructor(deps: RestartLogDeps) {
    this.#deps = deps
  }

  /** True from the end of Postgres until it accepts connections again. */
  get isDown(): boolean {
    return this.#endedAt !== undefined
  }

  ended(log: readonly string[]): void {
    const { clock, logger } = this.#deps
    this.#endedAt = clock.monotonicMs()
    this.#told = undefined
    logger.warn(
      { event: 'postgres.ended', postgresLog: log.slice(-LINES_MAX) },
      'the embedded Postgres has ended and is started again',
    )
  }

  /** When the reason changes, when the pause grows, and once a minute: tries go on for as long as it takes. */
  failed(error: unknown, retryInMs: number): void {
    const { clock, logger } = this.#deps
    const [at, reason, told] = [clock.monotonicMs(), reasonOf(error), this.#told]
    const isKnown = told?.reason === reason && retryInMs <= told.retryInMs && at - told.at < REPEAT_MS
    if (isKnown) return
    this.#told = { at, reason, retryInMs }
    const postgresLog = error instanceof PostgresError ? error.log.slice(-LINES_MAX) : []
    logger.warn(
      { event: 'postgres.not_restarted', error, retryInMs, downForMs: this.#downForMs(at), postgresLog },
      'the embedded Postgres does not start again yet',
    )
  }

  restarted(): void {
    const { clock, logger } = this.#deps
    const downForMs = this.#downForMs(clock.monotonicMs())
    this.#endedAt = undefined
    logger.info({ event: 'postgres.restarted', downForMs }, 'the embedded Postgres is back')
  }

  #downForMs(now: number): number {
    return Math.round(now - (this.#endedAt ?? now))
  }
}

/** Without process ids, times and other numbers, which differ from try to try. */
function reasonOf(error: unknown): string {
  return String(error).replaceAll(/\d+/g, '')
}
