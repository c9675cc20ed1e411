import type { Caller } from '../caller.ts'
import { invalidInput, type CarillonError } from '../errors.ts'
import { placeOf } from '../place.ts'
import type { Tx } from '../store/database.ts'
import { findRemoved } from '../store/rights.ts'
import { listKnownSecrets } from '../store/secrets.ts'
import { readTenantRules } from '../store/tenants.ts'
import type { CheckedInput, InputContext } from './schedule-input.ts'
import type { SchedulerContext } from './scheduler-context.ts'

/** What inputs of a caller are held to: by the installation, or by the tenant's own rules. */
export async function readRules(
  { clock, targets, minimumSeconds }: SchedulerContext,
  tx: Tx,
  { tenantId }: Caller,
): Promise<InputContext> {
  const rules = await readTenantRules(tx, { tenantId, now: clock.databaseNow() })
  return {
    targets,
    now: rules.now,
    minimumSeconds: rules.minimumSeconds ?? minimumSeconds,
    limits: { allowedHosts: rules.allowedHosts },
  }
}

/**
 * A user makes schedules in their own name: otherwise their limit, and their removal, would be others'. A service may make them for
 * users (E-28), but for nobody who was removed.
 * @throws CarillonError `invalid_input`
 */
export async function requireOwner(
  tx: Tx,
  caller: Caller,
  { ownerSubject }: Pick<CheckedInput, 'ownerSubject'>,
): Promise<void> {
  if (ownerSubject === null || ownerSubject === caller.subject) return
  if (caller.subject.startsWith('user:')) {
    throw refusedOwner(`the caller, ${caller.subject}: a user owns what it makes`, ownerSubject)
  }
  const removed = await findRemoved(tx, { ...placeOf(caller), subjects: [ownerSubject] })
  if (removed !== undefined) throw refusedOwner('somebody who was not removed from this project', ownerSubject)
}

function refusedOwner(expected: string, found: string): CarillonError {
  return invalidInput([{ path: 'ownerSubject', message: `expected ${expected}, got ${found}` }])
}

/**
 * A misspelt name would show only when the schedule comes due, perhaps at night.
 * @throws CarillonError `invalid_input` naming each secret that is not there
 */
export async function requireSecrets(
  { areSecretsElsewhere }: SchedulerContext,
  tx: Tx,
  caller: Caller,
  { secretRefs }: Pick<CheckedInput, 'secretRefs'>,
): Promise<void> {
  if (areSecretsElsewhere || secretRefs.length === 0) return
  const known = await listKnownSecrets(tx, { ...placeOf(caller), names: secretRefs.map(({ name }) => name) })
  const unknown = secretRefs.filter(({ name }) => !known.has(name))
  if (unknown.length === 0) return
  throw invalidInput(
    unknown.map(({ path, name }) => ({
      path: `target.${path}`,
      message: `expected the name of a secret of this project, got "${name}": keep the secret first`,
    })),
  )
}
