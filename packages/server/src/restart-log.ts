import type { Clock } from '@carillon/core'
import { PostgresError, type RestartListener } from '@carillon/postgres'
import type { Counter, Meter } from '@opentelemetry/api'
import type { Logger } from 'pino'

interface RestartLogDeps {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly logger: Pick<Logger, 'info' | 'warn'>
  readonly meter: Meter
}

/** How often a server that does not start is told of again, though nothing has changed. */
const REPEAT_MS = 60_000
const LINES_MAX = 10
/** For how long after a restart `notice` tells of it. */
const NOTICE_MS = 3_600_000

/** Logs when the embedded Postgres ends without being asked to, while it does not start, and when it is back. Counts the restarts. */
export class RestartLog implements RestartListener {
  readonly #deps: RestartLogDeps
  readonly #restarts: Counter
  #restartedAt = -Infinity
  /** Undefined while it runs. */
  #endedAt: number | undefined
  /** The last failure that was told of. */
  #told: { readonly at: number; readonly reason: string; readonly retryInMs: number } | undefined

  constructor(deps: RestartLogDeps) {
    this.#deps = deps
    this.#restarts = deps.meter.createCounter('postgres.restarts', {
      description: 'times that Carillon started its own Postgres again after it had ended; expected: 0',
    })
    // From the start: an alert on any increase does not see a counter that begins at 1.
    this.#restarts.add(0)
  }

  /** True from the end of Postgres until it accepts connections again. */
  get isDown(): boolean {
    return this.#endedAt !== undefined
  }

  /** Says so for an hour after a restart; undefined if there was none. */
  get notice(): string | undefined {
    const agoMs = this.#deps.clock.monotonicMs() - this.#restartedAt
    if (agoMs >= NOTICE_MS) return undefined
    return `the embedded Postgres ended and was started again ${Math.floor(agoMs / 60_000)} minutes ago: see postgres.ended in the log`
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
    this.#restartedAt = clock.monotonicMs()
    this.#restarts.add(1)
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
