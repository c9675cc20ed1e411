import { CarillonError, migrationStatus, type Clock, type ErrorCode } from '@carillon/core'
import type { Logger } from 'pino'

import type { Pool } from './database.ts'

/** How old an answer may be: probes of several balancers must not add up to a load. */
const CACHED_MS = 1000
/** A probe wants an answer, and a database that takes longer is none to send requests to. */
const PATIENCE_MS = 2000

/** All that is ever told: anybody may ask, and what a driver says names hosts, users and databases. */
const NOT_STARTED = 'the worker has not started'
const STOPPING = 'the service is stopping'
const POSTGRES_DOWN = 'the embedded Postgres has ended and is started again'
const UNUSABLE = 'the database cannot be used'
const OTHER_SCHEMA = 'the schema is not of this version: run `carillon migrate up`'

const SCHEMA_CODES: readonly ErrorCode[] = ['schema_outdated', 'schema_too_new', 'schema_changed']

interface ReadinessDeps {
  readonly pool: Pool
  readonly clock: Clock
  readonly logger: Logger
  /** True while the Postgres that Carillon brought is started again. @default never */
  readonly isPostgresDown?: () => boolean
  /** What happened lately though all is well again. @default nothing */
  readonly notice?: () => string | undefined
}

/** What is wrong with the database: what everybody is told, and what only the log is. */
interface Finding {
  readonly problem: string
  readonly error: unknown
}

/** Whether this process should be sent work, and what stands in the way. */
export class Readiness {
  readonly #deps: ReadinessDeps
  #stage: 'starting' | 'started' | 'stopping' = 'starting'
  #latest: { readonly askedAt: number; readonly problems: Promise<readonly string[]> } | undefined
  #logged: string | undefined

  constructor(deps: ReadinessDeps) {
    this.#deps = deps
  }

  started(): void {
    if (this.#stage === 'starting') this.#stage = 'started'
  }

  /** From now on it is not ready, whatever the database says. */
  stopping(): void {
    this.#stage = 'stopping'
  }

  /** What happened lately, though it does not stand in the way; one sentence each. */
  get notices(): readonly string[] {
    const notice = this.#deps.notice?.()
    return notice === undefined ? [] : [notice]
  }

  /** One sentence each; none if it is ready. */
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
      // What was found before its end counts for nothing. The log is told of it by others.
      this.#latest = undefined
      return [POSTGRES_DOWN]
    }
    const now = clock.monotonicMs()
    if (this.#latest === undefined || now - this.#latest.askedAt >= CACHED_MS) {
      this.#latest = { askedAt: now, problems: this.#askInTime() }
    }
    return this.#latest.problems
  }

  async #askInTime(): Promise<readonly string[]> {
    const late = Promise.withResolvers<Finding>()
    const error = new Error(`the database did not answer within ${PATIENCE_MS} ms`)
    const cancel = this.#deps.clock.after(PATIENCE_MS, () => late.resolve({ problem: UNUSABLE, error }))
    const finding = await Promise.race([this.#ask(), late.promise])
    cancel()
    this.#logChange(finding)
    return finding === undefined ? [] : [finding.problem]
  }

  async #ask(): Promise<Finding | undefined> {
    try {
      const { pending } = await migrationStatus(this.#deps.pool)
      if (pending.length === 0) return undefined
      return { problem: OTHER_SCHEMA, error: new Error(`the database lacks ${pending.join(', ')}`) }
    } catch (error) {
      const isOfSchema = error instanceof CarillonError && SCHEMA_CODES.includes(error.code)
      return { problem: isOfSchema ? OTHER_SCHEMA : UNUSABLE, error }
    }
  }

  /** Once, however often it is asked for: probes come every second. */
  #logChange(finding: Finding | undefined): void {
    if (finding?.problem === this.#logged) return
    this.#logged = finding?.problem
    const { logger } = this.#deps
    if (finding === undefined) logger.info({ event: 'service.ready' }, 'service ready again')
    else logger.warn({ event: 'service.not_ready', ...finding }, 'service not ready')
  }
}
