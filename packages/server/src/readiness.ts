import { migrationStatus, type Clock } from '@carillon/core'

import type { Pool } from './database.ts'

/** How old an answer may be: probes of several balancers must not add up to a load. */
const CACHED_MS = 1000
/** A probe wants an answer, and a database that takes longer is none to send requests to. */
const PATIENCE_MS = 2000

interface ReadinessDeps {
  readonly pool: Pool
  readonly clock: Clock
}

/** Whether this process should be sent work, and what stands in the way. */
export class Readiness {
  readonly #deps: ReadinessDeps
  #stage: 'starting' | 'started' | 'stopping' = 'starting'
  #latest: { readonly askedAt: number; readonly problems: Promise<readonly string[]> } | undefined

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

  /** One sentence each; none if it is ready. */
  async problems(): Promise<readonly string[]> {
    switch (this.#stage) {
      case 'starting':
        return ['This process is starting.']
      case 'stopping':
        return ['This process is stopping.']
      case 'started':
        return this.#problemsOfDatabase()
    }
  }

  #problemsOfDatabase(): Promise<readonly string[]> {
    const { clock } = this.#deps
    const now = clock.monotonicMs()
    if (this.#latest === undefined || now - this.#latest.askedAt >= CACHED_MS) {
      this.#latest = { askedAt: now, problems: this.#askInTime() }
    }
    return this.#latest.problems
  }

  async #askInTime(): Promise<readonly string[]> {
    const late = Promise.withResolvers<readonly string[]>()
    const cancel = this.#deps.clock.after(PATIENCE_MS, () => late.resolve(['The database does not answer in time.']))
    const problems = await Promise.race([this.#ask(), late.promise])
    cancel()
    return problems
  }

  async #ask(): Promise<readonly string[]> {
    try {
      const { pending } = await migrationStatus(this.#deps.pool)
      return pending.length === 0 ? [] : [`The database lacks ${pending.join(', ')}: run \`carillon migrate up\`.`]
    } catch (error) {
      return [`The database cannot be used: ${error instanceof Error ? error.message : String(error)}.`]
    }
  }
}
