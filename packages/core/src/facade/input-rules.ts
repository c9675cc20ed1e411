import type { Caller } from '../caller.ts'
import { invalidInput } from '../errors.ts'
import { placeOf } from '../place.ts'
import type { Problem } from '../problem.ts'
import type { Tx } from '../store/database.ts'
import { listKnownSecrets } from '../store/secrets.ts'
import { readTenantRules, tenantRulesText, toTenantRules, type TenantRules } from '../store/tenants.ts'
import type { CheckedInput, InputContext } from './schedule-input.ts'
import type { SchedulerContext } from './scheduler-context.ts'

/** What inputs of a caller are held to: by the installation, or by the tenant's own rules. */
export async function readRules(context: SchedulerContext, tx: Tx, { tenantId }: Caller): Promise<InputContext> {
  return rulesOf(context, await readTenantRules(tx, { tenantId, now: context.clock.databaseNow() }))
}

/** One transaction that is told at its very beginning what inputs are held to: that costs no round trip of its own. */
export async function transactByRules<Result>(
  context: SchedulerContext,
  caller: Caller,
  work: (tx: Tx, rules: InputContext) => Promise<Result>,
): Promise<Result> {
  return context.transact(
    caller,
    // A pool that was not made by `createPool` does not tell the rows of a message of several statements.
    async (tx, read) =>
      work(tx, read.length === 0 ? await readRules(context, tx, caller) : rulesOf(context, toTenantRules(read))),
    tenantRulesText(context.clock.databaseNow()),
  )
}

function rulesOf({ targets, minimumSeconds, known }: SchedulerContext, rules: TenantRules): InputContext {
  return {
    targets,
    known,
    now: rules.now,
    minimumSeconds: rules.minimumSeconds ?? minimumSeconds,
    limits: { allowedHosts: rules.allowedHosts },
  }
}

/**
 * A misspelt name would show only when the schedule comes due, perhaps at night.
 * @throws CarillonError `invalid_input` naming each secret that is not there
 */
export async function requireSecrets(
  context: SchedulerContext,
  tx: Tx,
  caller: Caller,
  checked: Pick<CheckedInput, 'secretRefs'>,
): Promise<void> {
  const known = await knownSecrets(context, tx, caller, [checked])
  const problems = known === undefined ? [] : secretProblems(checked, known)
  if (problems.length > 0) throw invalidInput(problems)
}

/** Of the secrets that inputs refer to those that are there; undefined if that cannot or need not be told. */
export async function knownSecrets(
  { areSecretsElsewhere }: SchedulerContext,
  tx: Tx,
  caller: Caller,
  checked: readonly Pick<CheckedInput, 'secretRefs'>[],
): Promise<ReadonlySet<string> | undefined> {
  if (areSecretsElsewhere) return undefined
  const names = new Set(checked.flatMap(({ secretRefs }) => secretRefs.map(({ name }) => name)))
  if (names.size === 0) return undefined
  return listKnownSecrets(tx, { ...placeOf(caller), names: [...names] })
}

export function secretProblems(
  { secretRefs }: Pick<CheckedInput, 'secretRefs'>,
  known: ReadonlySet<string>,
): readonly Problem[] {
  return secretRefs
    .filter(({ name }) => !known.has(name))
    .map(({ path, name }) => ({
      path: `target.${path}`,
      message: `expected the name of a secret of this project, got "${name}": keep the secret first`,
    }))
}
