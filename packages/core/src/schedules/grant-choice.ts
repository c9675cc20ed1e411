import { findGrant, type Grant } from '../access/grants.ts'
import type { Tx } from '../db/database.ts'
import { invalidInput, type CarillonError } from '../kernel/errors.ts'
import { identifierAt } from '../kernel/ids.ts'
import type { Scope } from '../kernel/scope.ts'
import { checkGrant, covers, type GrantRefusal } from '../policy/grant.ts'
import type { GrantChoice } from './store/schedule-writes.ts'

const OTHER_GRANT = 'name another grant, or set grantId to null to create one for this schedule'

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
  if (!isOwn) throw tooNarrow(requiredScope)
  const problem = checkGrant({ grant: { ...current, scopes: [requiredScope] }, now, requiredScope })
  if (problem !== null) throw notInForce(problem, 'set grantId to null to create another')
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
  if (problem === 'grant_scope') throw tooNarrow(requiredScope)
  if (problem !== null) throw notInForce(problem, OTHER_GRANT)
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

function notInForce(problem: GrantRefusal, remedy: string): CarillonError {
  const [state, mend] = problem === 'grant_expired' ? ['expired', `renew it, or ${remedy}`] : ['revoked', remedy]
  return invalidInput([
    { path: 'grantId', message: `expected a grant that is in force, got one that is ${state}: ${mend}` },
  ])
}

function tooNarrow(requiredScope: string): CarillonError {
  const message = `expected a grant that covers ${requiredScope}, got one that does not: ${OTHER_GRANT}`
  return invalidInput([{ path: 'grantId', message }])
}
