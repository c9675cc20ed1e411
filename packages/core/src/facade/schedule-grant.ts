import { invalidInput, type CarillonError } from '../errors.ts'
import { identifierAt } from '../identifier.ts'
import { checkGrant, covers, type GrantProblem } from '../policy/grant.ts'
import type { Tx } from '../store/database.ts'
import { findGrant, type Grant } from '../store/grants.ts'
import type { GrantChoice } from '../store/schedule-writes.ts'
import type { Place } from '../store/walled-transaction.ts'
import { unknownGrant } from './refusals.ts'

/** What a grant of its own is to carry, and until when; null: without end. */
type NewGrant = Pick<Wanted, 'scope' | 'now'> & { readonly expiresAt?: number | null }

interface Wanted {
  readonly place: Place
  /** Null: one that is not there yet. */
  readonly scheduleId: string | null
  /** The id of a grant; null: one of its own. */
  readonly grantId: string | null
  /** What its target needs. */
  readonly scope: string
  readonly now: number
}

/**
 * By what right an edited schedule will act. Left alone, the grant stays what it is, revoked or not: no other change gives a
 * right back. It only grows with a target that needs more, if it is the schedule's own and in force, and ends when it did.
 */
export async function grantForEdit(
  tx: Tx,
  {
    grantId,
    ...wanted
  }: Omit<Wanted, 'grantId'> & {
    /** Undefined: as it is. */
    readonly grantId: string | null | undefined
    readonly currentId: string
  },
): Promise<GrantChoice> {
  const { place, scope, now, currentId } = wanted
  if (typeof grantId === 'string' && grantId !== currentId) return givenGrant(tx, { ...wanted, grantId })
  const current = await findGrant(tx, { ...place, id: currentId })
  if (current === undefined) throw unknownGrant()
  const isOwn = current.scheduleId !== null
  if (grantId === null) {
    const isCarried = isOwn && checkGrant({ grant: current, now, requiredScope: scope }) === null
    return isCarried ? { id: currentId, own: null } : ownGrant(wanted)
  }
  if (current.scopes.some((held) => covers(held, scope))) return { id: currentId, own: null }
  if (!isOwn) throw tooNarrow(scope)
  const problem = checkGrant({ grant: { ...current, scopes: [scope] }, now, requiredScope: scope })
  if (problem !== null) throw notInForce(problem, 'ask for another with null')
  return ownGrant({ ...wanted, expiresAt: current.expiresAt })
}

function ownGrant({ scope, now, expiresAt = null }: NewGrant): GrantChoice {
  return { id: identifierAt(now), own: { scopes: [scope], expiresAt } }
}

async function givenGrant(
  tx: Tx,
  { place, grantId, ...wanted }: Wanted & { readonly grantId: string },
): Promise<GrantChoice> {
  const grant = await findGrant(tx, { ...place, id: grantId })
  requireGrant(grant, wanted)
  return { id: grant.id, own: null }
}

/**
 * Whether a schedule may be given a grant (I8).
 * @throws CarillonError `invalid_input` if there is none, or it is another schedule's, too narrow, or not in force
 */
export function requireGrant(
  grant: Grant | undefined,
  { scheduleId, scope, now }: Pick<Wanted, 'scheduleId' | 'scope' | 'now'>,
): asserts grant is Grant {
  if (grant === undefined || !isFor(grant, scheduleId)) throw unknownGrant()
  const problem = checkGrant({ grant, now, requiredScope: scope })
  if (problem === 'grant_scope') throw tooNarrow(scope)
  if (problem !== null) throw notInForce(problem, 'name another')
}

/** The grant that was made for another schedule is no grant for this one. */
function isFor({ scheduleId }: Grant, id: string | null): boolean {
  return scheduleId === null || scheduleId === id
}

function notInForce(problem: GrantProblem, remedy: string): CarillonError {
  const [state, mend] = problem === 'grant_expired' ? ['expired', `renew it, or ${remedy}`] : ['revoked', remedy]
  return invalidInput([
    { path: 'grantId', message: `expected a grant that is in force, got one that is ${state}: ${mend}` },
  ])
}

function tooNarrow(scope: string): CarillonError {
  const message = `expected a grant that carries ${scope}, got one that does not: name another, or null for one of its own`
  return invalidInput([{ path: 'grantId', message }])
}
