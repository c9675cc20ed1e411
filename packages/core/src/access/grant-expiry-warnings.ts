import { SYSTEM_SUBJECT } from '@carillon/api'

import { type Db } from '../db/database.ts'
import { lockSchedules } from '../db/locks.ts'
import { insertChanges } from '../db/schedule-changes.ts'
import { transact } from '../db/transact.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import { PeriodicService } from '../kernel/service.ts'
import { findExpiringGrants, markWarned, type ExpiringGrant } from './store/grants.ts'

export interface GrantExpiryWarningsDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
}

const GRANTS_AT_ONCE = 100
/** How many schedules one transaction locks. A locked schedule cannot begin a slot, so a larger number would delay slots. */
const SCHEDULES_AT_ONCE = 200

/**
 * Warns of grants that expire within a week: in the history of every schedule that acts by them, and so in the event log, and as an
 * event. Every worker searches for such grants. Only the worker that marks a grant as warned gives the warning, so there is one
 * warning per expiry.
 */
export class GrantExpiryWarnings extends PeriodicService<{ readonly warned: number }> {
  override readonly name = 'grant expiry warnings'
  readonly #deps: GrantExpiryWarningsDeps

  constructor(deps: GrantExpiryWarningsDeps, options: { readonly periodMs: number }) {
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

  /**
   * Marks the grant in the transaction of the first portion of schedules. If this process dies between two portions, the schedules of
   * the later ones get no warning, but no schedule gets two. Returns false if this worker did not warn.
   */
  async #warn(grant: ExpiringGrant): Promise<boolean> {
    const { db, clock, events } = this.#deps
    const { id, tenantId, projectId, subject, expiresAt, scheduleIds } = grant
    const reason = new Date(expiresAt).toISOString()
    for (let from = 0; from === 0 || from < scheduleIds.length; from += SCHEDULES_AT_ONCE) {
      const portion = scheduleIds.slice(from, from + SCHEDULES_AT_ONCE)
      const isWarned = await transact(db, clock, async (tx) => {
        const now = clock.databaseNow()
        // Lock order: schedules before grants, as a deletion does.
        await lockSchedules(tx, { scheduleIds: portion })
        if (from === 0 && !(await markWarned(tx, { id, expiresAt, now }))) return false
        await insertChanges(tx, {
          scheduleIds: portion,
          change: 'grant_expiring',
          actor: SYSTEM_SUBJECT,
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
