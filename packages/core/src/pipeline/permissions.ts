import { INSTALLATION_SUBJECT, type Refusal } from '@carillon/api'

import { nameOfMember, readPermissions, type Permissions, type RunOfGrant } from '../access/grants.ts'
import type { Db } from '../db/database.ts'
import { Batcher } from '../kernel/batcher.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import { FailureRecord, FORGET_AFTER_MS, type MonitoredPart, type ServiceFailure } from '../kernel/failure-record.ts'
import { checkGrant } from '../policy/grant.ts'
import type { AuthorizationPort } from '../ports/authorization.ts'
import type { TargetGrant, TargetLimits } from '../ports/target.ts'

export interface PermissionCheckerDeps {
  readonly db: Db
  readonly clock: Clock
  readonly events: Events
  /** Asked about owners and grant subjects in addition to the member list. @default the member list alone decides */
  readonly authorization?: AuthorizationPort | undefined
}

/** Whether a run may act now. */
export type Verdict =
  | { readonly kind: 'granted'; readonly grant: TargetGrant; readonly limits: TargetLimits }
  | { readonly kind: 'refused'; readonly reason: Refusal }

interface Waiting {
  readonly run: RunOfGrant
  readonly resolve: (permissions: Permissions) => void
  readonly reject: (error: unknown) => void
}

/** How many runs one read of permissions covers at most. */
const BATCH_MAX = 1000

/**
 * Checks each attempt's permission right before its target is called (I8). BEGIN checked the grant when the run began, but a
 * retry may follow hours later.
 *
 * Throws if the permission cannot be read: a run never acts on a permission that is unknown.
 */
export class PermissionChecker implements MonitoredPart {
  readonly name = 'permissions'
  readonly #deps: PermissionCheckerDeps
  readonly #failures: FailureRecord
  readonly #reads: Batcher<Waiting>

  constructor(deps: PermissionCheckerDeps) {
    this.#deps = deps
    this.#failures = new FailureRecord(deps, this, FORGET_AFTER_MS)
    this.#reads = new Batcher({
      batchMax: BATCH_MAX,
      write: (batch) => this.#readBatch(batch),
      onRejection: (error) => this.#failures.failed(error),
    })
  }

  get failure(): ServiceFailure | undefined {
    return this.#failures.failure
  }

  /**
   * @param requiredScope what the target needs for the spec that is about to be sent
   * @param known the permissions that were read when the run began, a moment ago; null: the checker reads them now
   */
  check(run: RunOfGrant, requiredScope: string, known: Permissions | null): Verdict | Promise<Verdict> {
    // The common case is synchronous: a herd of runs then needs no promise per run.
    if (known !== null && this.#deps.authorization === undefined) return verdictOf(known, run, requiredScope)
    return this.#ask(run, requiredScope, known)
  }

  async #ask(run: RunOfGrant, requiredScope: string, known: Permissions | null): Promise<Verdict> {
    const verdict = verdictOf(known ?? (await this.#read(run)), run, requiredScope)
    if (verdict.kind === 'refused') return verdict
    for (const subject of subjectsOf(run)) {
      if (!(await this.#isAllowed(run, subject))) return { kind: 'refused', reason: 'access_lost' }
    }
    return verdict
  }

  /**
   * A run needs a valid grant, and its owner and the grant's subject need read access to the project. A subject who lost write
   * access but may still read goes on: what they scheduled earlier belongs to the project.
   */
  async #isAllowed({ tenantId, projectId }: RunOfGrant, subject: string): Promise<boolean> {
    const { authorization } = this.#deps
    if (authorization === undefined || subject === INSTALLATION_SUBJECT) return true
    return authorization.isAllowed({ tenantId, projectId, subject, role: 'member' })
  }

  #read(run: RunOfGrant): Promise<Permissions> {
    return new Promise((resolve, reject) => this.#reads.add({ run, resolve, reject }))
  }

  async #readBatch(batch: readonly Waiting[]): Promise<void> {
    const { db, clock } = this.#deps
    try {
      const permissions = await readPermissions(db, { runs: batch.map(({ run }) => run), now: clock.databaseNow() })
      this.#failures.succeeded()
      for (const { resolve } of batch) resolve(permissions)
    } catch (error) {
      this.#failures.failed(error)
      for (const { reject } of batch) reject(error)
    }
  }
}

function verdictOf(permissions: Permissions, run: RunOfGrant, requiredScope: string): Verdict {
  const reason = refusalOf(permissions, run, requiredScope)
  if (reason !== null) return { kind: 'refused', reason }
  const { id, subject, billingAccountId } = run.grant
  return {
    kind: 'granted',
    grant: { id, subject, billingAccountId },
    limits: { allowedHosts: permissions.allowedHosts.get(run.tenantId) ?? null },
  }
}

function refusalOf({ limited, removed, now }: Permissions, run: RunOfGrant, requiredScope: string): Refusal | null {
  const { tenantId, projectId, scheduleId, grant } = run
  const isRemoved = (subject: string): boolean => removed.has(nameOfMember({ tenantId, projectId, subject }))
  if (removed.size > 0 && subjectsOf(run).some(isRemoved)) return 'access_lost'
  // A grant that was made for another schedule does not cover this one, whatever its scopes are.
  if (grant.scheduleId !== null && grant.scheduleId !== scheduleId) return 'grant_scope'
  const facts = limited.get(grant.id) ?? { scopes: grant.scopes, expiresAt: null, revokedAt: null }
  return checkGrant({ grant: facts, now, requiredScope })
}

/** The subjects who need access: the schedule's owner and the grant's subject, who are usually the same. */
function subjectsOf({ ownerSubject, grant }: RunOfGrant): readonly string[] {
  return ownerSubject === grant.subject ? [ownerSubject] : [ownerSubject, grant.subject]
}
