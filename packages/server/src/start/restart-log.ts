import type { Clock } from '@carillon/core'
import { PostgresError, type RestartListener } from '@carillon/postgres'
import type { Counter, Meter } from '@opentelemetry/api'
import type { Logger } from 'pino'

interface RestartLogDeps {
  readonly clock: Pick<Clock, 'monotonicMs'>
  readonly logger: Pick<Logger, 'info' | 'warn'>
  readonly meter: Meter
}

/** How often an unchanged failure to restart is logged again. */
const REPEAT_MS = 60_000
const LINES_MAX = 10
/** How long after a restart `notice` reports it. */
const NOTICE_MS = 3_600_000

/** Logs when the embedded Postgres stops unexpectedly, while restarts fail, and when it is back. Counts restarts. */
export class RestartLog implements RestartListener {
  readonly #deps: RestartLogDeps
  readonly #restarts: Counter
  #restartedAt = -Infinity
  /** When Postgres stopped, by the monotonic clock; undefined while it runs. */
  #endedAt: number | undefined
  /** The last failure that was logged. */
  #logged: { readonly at: number; readonly reason: string; readonly retryInMs: number } | undefined

  constructor(deps: RestartLogDeps) {
    this.#deps = deps
    this.#restarts = deps.meter.createCounter('postgres.restarts', {
      description: 'restarts of the embedded Postgres after it stopped unexpectedly; expected: 0',
    })
    // The metric shows 0 from the start: an alert on an increase would miss a counter whose first value is 1.
    this.#restarts.add(0)
  }

  /** True from the moment Postgres stopped until it accepts connections again. */
  get isDown(): boolean {
    return this.#endedAt !== undefined
  }

  /** Reports a restart in one sentence, for an hour; undefined otherwise. */
  get notice(): string | undefined {
    const agoMs = this.#deps.clock.monotonicMs() - this.#restartedAt
    if (agoMs >= NOTICE_MS) return undefined
    return `the embedded Postgres stopped and was restarted ${Math.floor(agoMs / 60_000)} minutes ago: see postgres.ended in the log`
  }

  ended(log: readonly string[]): void {
    const { clock, logger } = this.#deps
    this.#endedAt = clock.monotonicMs()
    this.#logged = undefined
    logger.warn(
      { event: 'postgres.ended', postgresLog: log.slice(-LINES_MAX) },
      'the embedded Postgres stopped and is being restarted',
    )
  }

  /** Carillon tries to restart Postgres forever, so this logs only when the reason changes, when the pause grows, and once a minute. */
  failed(error: unknown, retryInMs: number): void {
    const { clock, logger } = this.#deps
    const [at, reason, last] = [clock.monotonicMs(), reasonOf(error), this.#logged]
    const isKnown = last?.reason === reason && retryInMs <= last.retryInMs && at - last.at < REPEAT_MS
    if (isKnown) return
    this.#logged = { at, reason, retryInMs }
    const postgresLog = error instanceof PostgresError ? error.log.slice(-LINES_MAX) : []
    logger.warn(
      { event: 'postgres.not_restarted', error, retryInMs, downForMs: this.#downForMs(at), postgresLog },
      'the embedded Postgres could not be restarted yet',
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

/** The error without process ids, times and other numbers, which differ between attempts. */
function reasonOf(error: unknown): string {
  return String(error).replaceAll(/\d+/g, '')
}
