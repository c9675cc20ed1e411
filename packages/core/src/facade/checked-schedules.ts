import type { Caller } from '../caller.ts'
import { CarillonError, invalidInput } from '../errors.ts'
import { placeOf } from '../place.ts'
import type { Problem } from '../problem.ts'
import type { Tx } from '../store/database.ts'
import { findGrants, type Grant } from '../store/grants.ts'
import { listRemoved } from '../store/members.ts'
import { knownSecrets, secretProblems } from './input-rules.ts'
import { requireGrant } from './schedule-grant.ts'
import { checkInput, type CheckedInput, type InputContext } from './schedule-input.ts'
import type { SchedulerContext } from './scheduler-context.ts'

/** An input of which everything holds, also what only the database knows. */
export interface CheckedSchedule {
  readonly checked: CheckedInput
  /** The grant that it names; null: one of its own. */
  readonly grant: Grant | null
}

/** What of the database inputs are compared with: one statement for each, whatever their number. */
interface Facts {
  readonly removed: ReadonlySet<string>
  readonly secrets: ReadonlySet<string> | undefined
  readonly grants: ReadonlyMap<string, Grant>
}

/**
 * Checks new schedules, and reads what that takes. Says everything that is wrong with all of them: first what the inputs
 * themselves tell, then what the database does.
 * @param rootOf where an input stands: what the paths of its problems begin with
 * @throws CarillonError `invalid_input`
 */
export async function checkSchedules(
  context: SchedulerContext,
  tx: Tx,
  caller: Caller,
  { inputs, rules, rootOf }: { inputs: readonly unknown[]; rules: InputContext; rootOf: (index: number) => string },
): Promise<CheckedSchedule[]> {
  const checked = eachOf(inputs, rootOf, (input) => {
    const checkedInput = checkInput(input, rules)
    requireNameable(caller, checkedInput)
    return checkedInput
  })
  const facts = await readFacts(context, tx, caller, checked)
  return eachOf(checked, rootOf, (input) => {
    requireFacts(input, facts)
    if (input.grantId === null) return { checked: input, grant: null }
    const grant = facts.grants.get(input.grantId.toLowerCase())
    requireGrant(grant, { scheduleId: null, scope: input.requiredScope, now: rules.now })
    return { checked: input, grant }
  })
}

async function readFacts(
  context: SchedulerContext,
  tx: Tx,
  caller: Caller,
  checked: readonly CheckedInput[],
): Promise<Facts> {
  const place = placeOf(caller)
  const owners = named(checked.map(({ ownerSubject }) => (ownerSubject === caller.subject ? null : ownerSubject)))
  const grantIds = named(checked.map(({ grantId }) => grantId))
  return {
    removed: owners.length === 0 ? new Set() : await listRemoved(tx, { ...place, subjects: owners }),
    secrets: await knownSecrets(context, tx, caller, checked),
    grants: grantIds.length === 0 ? new Map() : await findGrants(tx, { ...place, ids: grantIds }),
  }
}

function named(names: readonly (string | null)[]): string[] {
  return [...new Set(names)].filter((name) => name !== null)
}

/** A user makes schedules in their own name: otherwise their limit, and their removal, would be others' (E-28). */
function requireNameable(caller: Caller, { ownerSubject }: CheckedInput): void {
  if (ownerSubject === null || ownerSubject === caller.subject || !caller.subject.startsWith('user:')) return
  throw refusedOwner(`the caller, ${caller.subject}: a user owns what it makes`, ownerSubject)
}

/** A service may make schedules for users, but for nobody who was removed. */
function requireFacts(checked: CheckedInput, { removed, secrets }: Facts): void {
  const { ownerSubject } = checked
  if (ownerSubject !== null && removed.has(ownerSubject)) {
    throw refusedOwner('somebody who was not removed from this project', ownerSubject)
  }
  const problems = secrets === undefined ? [] : secretProblems(checked, secrets)
  if (problems.length > 0) throw invalidInput(problems)
}

function refusedOwner(expected: string, found: string): CarillonError {
  return invalidInput([{ path: 'ownerSubject', message: `expected ${expected}, got ${found}` }])
}

/** Does something with each, and throws what is wrong with all of them together. */
export function eachOf<Item, Result>(
  items: readonly Item[],
  rootOf: (index: number) => string,
  work: (item: Item, index: number) => Result,
): Result[] {
  const problems: Problem[] = []
  const results: Result[] = []
  for (const [index, item] of items.entries()) {
    try {
      results.push(work(item, index))
    } catch (error) {
      if (!(error instanceof CarillonError) || error.code !== 'invalid_input') throw error
      const root = rootOf(index)
      problems.push(...error.problems.map(({ path, message }) => ({ path: under(root, path), message })))
    }
  }
  if (problems.length > 0) throw invalidInput(problems)
  return results
}

function under(root: string, path: string): string {
  return root === '' || path === '' ? root + path : `${root}.${path}`
}
