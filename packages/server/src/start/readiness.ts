import { CarillonError, migrationStatus, missingMigrationsText, type Clock, type ErrorCode } from '@carillon/core'
import type { Logger } from 'pino'

import type { Pool } from './database.ts'

/** How long a check of the database is cached, so that the probes of many load balancers add no load. */
const CACHE_MS = 1000
/** How long the database may take to answer a check. A slower one counts as unusable. */
const TIMEOUT_MS = 2000

/**
 * The only texts that /readyz shows. It needs no key, and messages of the database driver would reveal hosts, users and databases.
 */
const NOT_STARTED = 'the worker has not started'
const STOPPING = 'this process is stopping'
const POSTGRES_DOWN = 'the embedded Postgres stopped and is being restarted'
const UNUSABLE = 'the database cannot be used'
const WRONG_SCHEMA = 'the database schema does not match this version: run `carillon migrate up`'

const SCHEMA_CODES: readonly ErrorCode[] = ['schema_outdated', 'schema_too_new', 'schema_changed']

interface ReadinessDeps {
  readonly pool: Pool
  readonly clock: Clock
  readonly logger: Logger
  /** True while the embedded Postgres is being restarted. @default never */
  readonly isPostgresDown?: () => boolean
  /** A recent incident that is over. @default none */
  readonly notice?: () => string | undefined
}

/** What is wrong with the database: /readyz shows `problem`, and only the log shows `error`. */
interface Finding {
  readonly problem: string
  readonly error: unknown
}

/** Decides whether a load balancer should send requests to this process, for /readyz. */
export class Readiness {
  readonly #deps: ReadinessDeps
  #stage: 'starting' | 'started' | 'stopping' = 'starting'
  #latest: { readonly checkedAt: number; readonly problems: Promise<readonly string[]> } | undefined
  #logged: string | undefined

  constructor(deps: ReadinessDeps) {
    this.#deps = deps
  }

  started(): void {
    if (this.#stage === 'starting') this.#stage = 'started'
  }

  /** From now on the process is not ready, whatever the state of the database. */
  stopping(): void {
    this.#stage = 'stopping'
  }

  /** Recent incidents that are over, one sentence each. */
  get notices(): readonly string[] {
    const notice = this.#deps.notice?.()
    return notice === undefined ? [] : [notice]
  }

  /** Why the process is not ready, one sentence each; empty if it is ready. */
  async problems(): Promise<readonly string[]> {
    switch (this.#stage) {
      case 'starting':
        return [NOT_STARTED]
      case 'stopping':
        return [STOPPING]
      case 'started':
        return this.#problemsOfDatabase()
    }
  }

  async #problemsOfDatabase(): Promise<readonly string[]> {
    const { clock, isPostgresDown } = this.#deps
    if (isPostgresDown?.() === true) {
      // The cached answer is from before Postgres stopped. RestartLog writes the log lines.
      this.#latest = undefined
      return [POSTGRES_DOWN]
    }
    const now = clock.monotonicMs()
    if (this.#latest === undefined || now - this.#latest.checkedAt >= CACHE_MS) {
      this.#latest = { checkedAt: now, problems: this.#checkWithTimeout() }
    }
    return this.#latest.problems
  }

  async #checkWithTimeout(): Promise<readonly string[]> {
    const late = Promise.withResolvers<Finding>()
    const error = new Error(`the database did not answer within ${TIMEOUT_MS} ms`)
    const cancel = this.#deps.clock.after(TIMEOUT_MS, () => late.resolve({ problem: UNUSABLE, error }))
    const finding = await Promise.race([this.#check(), late.promise])
    cancel()
    this.#logChange(finding)
    return finding === undefined ? [] : [finding.problem]
  }

  async #check(): Promise<Finding | undefined> {
    try {
      const { pending } = await migrationStatus(this.#deps.pool)
      if (pending.length === 0) return undefined
      return { problem: WRONG_SCHEMA, error: new Error(missingMigrationsText(pending)) }
    } catch (error) {
      const isSchemaError = error instanceof CarillonError && SCHEMA_CODES.includes(error.code)
      return { problem: isSchemaError ? WRONG_SCHEMA : UNUSABLE, error }
    }
  }

  /** Logs changes only, because probes come every second. */
  #logChange(finding: Finding | undefined): void {
    if (finding?.problem === this.#logged) return
    this.#logged = finding?.problem
    const { logger } = this.#deps
    if (finding === undefined) logger.info({ event: 'service.ready' }, 'service ready again')
    else logger.warn({ event: 'service.not_ready', ...finding }, 'service not ready')
  }
}
