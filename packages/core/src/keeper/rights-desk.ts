import type { AuthorizationPort } from '../authorization.ts'
import { INSTALLATION_SUBJECT } from '../caller.ts'
import type { Clock } from '../clock.ts'
import type { Events } from '../events.ts'
import { FailureRecord, FORGET_AFTER_MS, type Part, type ServiceFailure } from '../failure-record.ts'
import { checkGrant, type Refusal } from '../policy/grant.ts'
import type { Db } from '../store/database.ts'
import { nameOfMember, readRights, type Rights, type RunOfGrant } from '../store/rights.ts'
import type { TargetGrant, TargetLimits } from '../target.ts'

export interface RightsDeskDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  /** Asked about owners besides the project's own members. @default nobody */
  readonly authorization?: AuthorizationPort | undefined
}

/** Whether a run may act at this moment. */
export type Verdict =
  | { readonly kind: 'granted'; readonly grant: TargetGrant; readonly limits: TargetLimits }
  | { readonly kind: 'refused'; readonly reason: Refusal }

interface Waiting {
  readonly run: RunOfGrant
  readonly resolve: (rights: Rights) => void
  readonly reject: (error: unknown) => void
}

const BATCH_MAX = 1000

/**
 * Checks the right of each attempt anew, right before its target is called (I8): begin saw the grant as it was then, and a
 * retry may come hours later. In micro-batches: while one is being read the next one gathers.
 *
 * What cannot be found out is thrown: nobody acts by a right that nobody could look up.
 */
export class RightsDesk implements Part {
  readonly name = 'permissions'
  readonly #deps: RightsDeskDeps
  readonly #failures: FailureRecord
  #waiting: Waiting[] = []
  #isReading = false

  constructor(deps: RightsDeskDeps) {
    this.#deps = deps
    this.#failures = new FailureRecord(deps, this, FORGET_AFTER_MS)
  }

  get failure(): ServiceFailure | undefined {
    return this.#failures.failure
  }

  /**
   * @param requiredScope what the target needs for the spec that is about to be sent
   * @param known what was found when the run had begun, a moment ago; null: it is looked up
   */
  check(run: RunOfGrant, requiredScope: string, known: Rights | null): Verdict | Promise<Verdict> {
    // Nobody to wait for, as nearly always: a herd spares a promise for each.
    if (known !== null && this.#deps.authorization === undefined) return verdictOf(known, run, requiredScope)
    return this.#ask(run, requiredScope, known)
  }

  async #ask(run: RunOfGrant, requiredScope: string, known: Rights | null): Promise<Verdict> {
    const verdict = verdictOf(known ?? (await this.#read(run)), run, requiredScope)
    if (verdict.kind === 'refused') return verdict
    for (const subject of subjectsOf(run)) {
      if (!(await this.#isAllowed(run, subject))) return { kind: 'refused', reason: 'access_lost' }
    }
    return verdict
  }

  /**
   * E-28: the right to run is the grant's and, still, that of its owner and of whom the grant is of: who may no longer read the
   * project does not act in it. Who may only read goes on: what they scheduled when they could write is the project's.
   */
  async #isAllowed({ tenantId, projectId }: RunOfGrant, subject: string): Promise<boolean> {
    const { authorization } = this.#deps
    if (authorization === undefined || subject === INSTALLATION_SUBJECT) return true
    return authorization.isAllowed({ tenantId, projectId, subject, role: 'member' })
  }

  #read(run: RunOfGrant): Promise<Rights> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ run, resolve, reject })
      if (!this.#isReading) this.#failures.own(this.#readAll())
    })
  }

  async #readAll(): Promise<void> {
    this.#isReading = true
    try {
      // One turn of the event loop: what was begun together is checked together.
      await Promise.resolve()
      while (this.#waiting.length > 0) await this.#readBatch(this.#waiting.splice(0, BATCH_MAX))
    } finally {
      this.#isReading = false
    }
  }

  async #readBatch(batch: readonly Waiting[]): Promise<void> {
    const { db, clock } = this.#deps
    try {
      const rights = await readRights(db, { runs: batch.map(({ run }) => run), now: clock.databaseNow() })
      this.#failures.succeeded()
      for (const { resolve } of batch) resolve(rights)
    } catch (error) {
      this.#failures.failed(error)
      for (const { reject } of batch) reject(error)
    }
  }
}

function verdictOf(rights: Rights, run: RunOfGrant, requiredScope: string): Verdict {
  const reason = refusalOf(rights, run, requiredScope)
  if (reason !== null) return { kind: 'refused', reason }
  const { id, subject, billingAccountId } = run.grant
  return {
    kind: 'granted',
    grant: { id, subject, billingAccountId },
    limits: { allowedHosts: rights.allowedHosts.get(run.tenantId) ?? null },
  }
}

/** The grant of another schedule is none for this one, whatever it carries (G-3). */
function refusalOf({ limited, removed, now }: Rights, run: RunOfGrant, requiredScope: string): Refusal | null {
  const { tenantId, projectId, scheduleId, grant } = run
  const isRemoved = (subject: string): boolean => removed.has(nameOfMember({ tenantId, projectId, subject }))
  if (removed.size > 0 && subjectsOf(run).some(isRemoved)) return 'access_lost'
  if (grant.scheduleId !== null && grant.scheduleId !== scheduleId) return 'grant_scope'
  const facts = limited.get(grant.id) ?? { scopes: grant.scopes, expiresAt: null, revokedAt: null }
  return checkGrant({ grant: facts, now, requiredScope })
}

/** Who must still have access: the owner, and whom the grant is of. Mostly the same. */
function subjectsOf({ ownerSubject, grant }: RunOfGrant): readonly string[] {
  return ownerSubject === grant.subject ? [ownerSubject] : [ownerSubject, grant.subject]
}
