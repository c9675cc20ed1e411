import { Auditor, type AuditCounts, type AuditorDeps, type AuditorOptions } from '../src/audit/auditor.ts'
import { nowOf } from '../src/db/now.ts'
import { ownLease } from './own-lease.ts'
import { sql } from './sql.ts'

/** An auditor that a test drives by hand, outside of a worker. */
export class TestAuditor extends Auditor {
  readonly #deps: Omit<AuditorDeps, 'lease'>

  constructor(deps: Omit<AuditorDeps, 'lease'>, options: AuditorOptions = {}) {
    super({ ...deps, lease: ownLease() }, options)
    this.#deps = deps
  }

  /** Requests a full audit, and does all its slices. */
  async audit(): Promise<AuditCounts> {
    const { db, clock } = this.#deps
    await sql`
      insert into carillon.service_turns as turns (name, next_at, requested_at)
      values ('audit', ${nowOf(clock.databaseNow())}, ${nowOf(clock.databaseNow())})
      on conflict (name) do update
      set next_at = excluded.next_at, requested_at = excluded.requested_at, worker_id = null, until = null`.execute(db)
    try {
      for (;;) {
        const counts = await this.runOnce()
        if (counts === undefined) throw new Error('expected the turn of the audit, got none: another auditor holds it')
        if (counts.isWhole) return counts
      }
    } finally {
      await this.stop()
    }
  }
}
