import { findGrant, type Grant } from '../access/grants.ts'
import type { Tx } from '../db/database.ts'
import { invalidInput, type CarillonError } from '../kernel/errors.ts'
import { identifierAt } from '../kernel/ids.ts'
import type { Scope } from '../kernel/scope.ts'
import { checkGrant, covers, type GrantRefusal } from '../policy/grant.ts'
import type { GrantChoice } from './store/schedule-writes.ts'

const OTHER_GRANT = 'set grantId of the schedule to another grant, or to null to create one for the schedule'

/** What a schedule requires of its grant. */
interface GrantNeed {
  /** Null: the schedule does not exist yet. */
  readonly scheduleId: string | null
  readonly requiredScope: string
  readonly now: number
}

/**
 * Chooses the grant of an edited schedule. If the edit names no grant, the schedule keeps its grant, even a revoked one: only an edit
 * of `grantId` replaces a revoked grant. If the edited target needs a wider scope and the schedule has a grant of its own that is in
 * force, it gets a new grant of its own that expires at the same instant. Without such a grant the edit is refused.
 */
export async function grantForEdit(
  tx: Tx,
  {
    grantId,
    ...wanted
  }: GrantNeed & {
    readonly scope: Scope
    /** Null asks for a grant of the schedule's own. Undefined keeps the current grant. */
    readonly grantId: string | null | undefined
    readonly currentId: string
  },
): Promise<GrantChoice> {
  const { scope, requiredScope, now, currentId } = wanted
  if (typeof grantId === 'string' && grantId !== currentId) {
    const grant = await findGrant(tx, { ...scope, id: grantId })
    requireGrant(grant, wanted)
    return { id: grant.id, own: null }
  }
  const current = await findGrant(tx, { ...scope, id: currentId })
  if (current === undefined) throw unknownGrant()
  const isOwn = current.scheduleId !== null
  if (grantId === null) {
    const isCarried = isOwn && checkGrant({ grant: current, now, requiredScope }) === null
    return isCarried ? { id: currentId, own: null } : ownGrant(wanted)
  }
  if (current.scopes.some((held) => covers(held, requiredScope))) return { id: currentId, own: null }
  if (!isOwn) throw refusedGrant('grant_scope', requiredScope)
  const problem = checkGrant({ grant: { ...current, scopes: [requiredScope] }, now, requiredScope })
  if (problem !== null) throw refusedGrant(problem, requiredScope, 'set grantId to null to create another')
  return ownGrant({ ...wanted, expiresAt: current.expiresAt })
}

function ownGrant({
  requiredScope,
  now,
  expiresAt = null,
}: Pick<GrantNeed, 'requiredScope' | 'now'> & { readonly expiresAt?: number | null }): GrantChoice {
  return { id: identifierAt(now), own: { scopes: [requiredScope], expiresAt } }
}

/**
 * Requires that a schedule may act by a grant (I8).
 * @throws CarillonError `invalid_input` if the grant does not exist, belongs to another schedule, is too narrow or not in force
 */
export function requireGrant(
  grant: Grant | undefined,
  { scheduleId, requiredScope, now }: GrantNeed,
): asserts grant is Grant {
  if (grant === undefined) throw unknownGrant()
  if (grant.scheduleId !== null && grant.scheduleId !== scheduleId) throw grantOfAnotherSchedule()
  const problem = checkGrant({ grant, now, requiredScope })
  if (problem !== null) throw refusedGrant(problem, requiredScope)
}

export function unknownGrant(): CarillonError {
  return invalidInput([
    { path: 'grantId', message: 'expected the id of a grant of this project, got one that does not exist there' },
  ])
}

function grantOfAnotherSchedule(): CarillonError {
  const message = `expected a grant that schedules share, got another schedule's own grant: ${OTHER_GRANT}`
  return invalidInput([{ path: 'grantId', message }])
}

function refusedGrant(problem: GrantRefusal, requiredScope: string, remedy?: string): CarillonError {
  return invalidInput([{ path: 'grantId', message: refusedGrantText(problem, requiredScope, remedy) }])
}

/** The message about a grant by which a schedule may not act. */
export function refusedGrantText(problem: GrantRefusal, requiredScope: string, remedy = OTHER_GRANT): string {
  switch (problem) {
    case 'grant_expired':
      return `expected a grant that is in force, got one that is expired: renew it, or ${remedy}`
    case 'grant_revoked':
      return `expected a grant that is in force, got one that is revoked: ${remedy}`
    case 'grant_scope':
      return `expected a grant that covers ${requiredScope}, got one that does not: ${remedy}`
  }
}
