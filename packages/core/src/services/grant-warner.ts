import type { Clock } from '../clock.ts'
import type { Events } from '../events.ts'
import { PeriodicService } from '../service.ts'
import { transact, type Db } from '../store/database.ts'
import { findExpiringGrants, markWarned, type ExpiringGrant } from '../store/expiring-grants.ts'
import { insertChanges } from '../store/schedule-changes.ts'
import { lockSchedules } from '../store/schedule-lock.ts'

export interface GrantWarnerDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
}

const GRANTS_AT_ONCE = 100
/** A schedule that is locked cannot begin: so few that nobody is late for it. */
const SCHEDULES_AT_ONCE = 200

/**
 * Warns of grants that end within a week: in the history of every schedule that acts by them, and so in the feed, and as an
 * event. Once for each end, whatever number of workers look: who marks the grant tells.
 */
export class GrantWarner extends PeriodicService<{ readonly warned: number }> {
  override readonly name = 'grant warner'
  readonly #deps: GrantWarnerDeps

  constructor(deps: GrantWarnerDeps, options: { readonly periodMs: number }) {
    super(deps, options.periodMs)
    this.#deps = deps
  }

  async runOnce(): Promise<{ readonly warned: number }> {
    const { db, clock } = this.#deps
    let warned = 0
    for (;;) {
      const expiring = await findExpiringGrants(db, { now: clock.databaseNow(), limit: GRANTS_AT_ONCE })
      for (const grant of expiring) if (await this.#warn(grant)) warned += 1
      if (expiring.length < GRANTS_AT_ONCE) return { warned }
    }
  }

  /** The grant is marked with the first portion: should this process die in between, the rest get no line, and nobody two. */
  async #warn(grant: ExpiringGrant): Promise<boolean> {
    const { db, clock, events } = this.#deps
    const { id, tenantId, projectId, subject, expiresAt, scheduleIds } = grant
    const reason = new Date(expiresAt).toISOString()
    for (let from = 0; from === 0 || from < scheduleIds.length; from += SCHEDULES_AT_ONCE) {
      const portion = scheduleIds.slice(from, from + SCHEDULES_AT_ONCE)
      const isWarned = await transact(db, clock, async (tx) => {
        const now = clock.databaseNow()
        // Schedules first, as everywhere: who deletes one holds it when it comes to the grant.
        await lockSchedules(tx, { scheduleIds: portion })
        if (from === 0 && !(await markWarned(tx, { id, expiresAt, now }))) return false
        await insertChanges(tx, {
          scheduleIds: portion,
          change: 'grant_expiring',
          actor: 'system:carillon',
          reason,
          now,
        })
        return true
      })
      if (!isWarned) return false
    }
    events.emit('grant.expiring', { tenantId, projectId, grantId: id, subject, expiresAt, scheduleIds })
    return true
  }
}
