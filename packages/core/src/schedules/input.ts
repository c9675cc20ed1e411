import {
  expected,
  expectedText,
  foundName,
  isUuid,
  SCHEDULE_EDIT_FIELDS,
  SCHEDULE_FIELDS,
  SCHEDULE_INPUT_MAX_LENGTH,
  SCHEDULE_NAME_MAX_LENGTH,
  storableText,
  typedSubject,
  unknownFieldText,
  type ScheduleEdit as ContractEdit,
  type ScheduleInput as ContractInput,
} from '@carillon/api'
import { z } from 'zod'

import { findGrants, type Grant } from '../access/grants.ts'
import { listRemoved } from '../access/members.ts'
import { listKnownSecrets } from '../access/secrets.ts'
import type { CadenceCache, ParsedCadence, PolicyInputResult } from '../cadences/cadence-cache.ts'
import type { Tx } from '../db/database.ts'
import { schemaProblems } from '../kernel/checked-object.ts'
import type { Clock } from '../kernel/clock.ts'
import { CarillonError, invalidInput, type Problem } from '../kernel/errors.ts'
import { type Caller, type Scope, scopeOf } from '../kernel/scope.ts'
import { checkKeyRetention } from '../policy/retry.ts'
import type { PolicyDefaults, SchedulePolicy } from '../policy/schedule-policy.ts'
import type { Target, TargetLimits } from '../ports/target.ts'
import { requireGrant } from './grant-choice.ts'
import { checkInTargets, type HookInput } from './target-hooks.ts'

/**
 * An input of the contract in which core accepts any cadence, target and policy, because core checks them itself: which kinds of
 * targets there are depends on the installation.
 */
type Unchecked<Input> = {
  readonly [Field in keyof Input]: Field extends 'cadence' | 'target' | 'policy' ? unknown : Input[Field]
}

/** What a caller sends to create a schedule. */
export type ScheduleInput = Unchecked<ContractInput>

/** What a caller sends to edit a schedule. An absent field keeps its value. */
export type ScheduleEdit = Unchecked<ContractEdit>

/** A valid input with every default filled in. */
export interface CheckedInput {
  readonly name: string
  readonly cadence: ParsedCadence
  readonly target: { readonly kind: string }
  /** The scope that a grant needs for this target. */
  readonly requiredScope: string
  readonly policy: SchedulePolicy
  readonly policyJson: string
  readonly secretRefs: readonly { readonly path: string; readonly name: string }[]
  /** Null: the schedule gets a grant of its own. */
  readonly grantId: string | null
  /** When the named grant expires, in epoch milliseconds; null if it never does, or if none is named. Only `checkInputs` looks it up. */
  readonly grantExpiresAt: number | null
  /** Null: the caller owns it. */
  readonly ownerSubject: string | null
}

/** What a tenant's inputs are checked against. */
export interface InputRules {
  readonly now: number
  readonly minimumSeconds: number
  readonly targets: ReadonlyMap<string, Target>
  /** The tenant's limits for its targets. */
  readonly limits: TargetLimits
  readonly cadences: CadenceCache
  /** Limits how long the hooks of targets take. */
  readonly clock: Clock
  /** True if a store outside Carillon keeps the secrets, so that no check can tell which secrets exist. */
  readonly areSecretsElsewhere: boolean
}

/**
 * Checks inputs of new schedules in three steps: first every field by itself, then against the database, then by their targets. One error
 * names all problems of the step that failed.
 * @param rootOf returns the path of an input; the paths of its problems start with it
 * @param isDryRun true for a preview: whatever the targets write is rolled back
 * @throws CarillonError `invalid_input`, or `target_hook_failed`
 */
export async function checkInputs(
  tx: Tx,
  caller: Caller,
  {
    inputs,
    rules,
    rootOf,
    isDryRun = false,
  }: { inputs: readonly unknown[]; rules: InputRules; rootOf: (index: number) => string; isDryRun?: boolean },
): Promise<CheckedInput[]> {
  const checked = mapInputs(inputs, rootOf, (input) => {
    const checkedInput = checkInput(input, rules, caller)
    requireOwnName(caller, checkedInput)
    return checkedInput
  })
  const facts = await readFacts(tx, caller, checked, rules)
  const known = mapInputs(checked, rootOf, (input) => withFacts(input, facts, rules.now))
  if (known.some(({ target }) => rules.targets.get(target.kind)?.checkIn !== undefined)) {
    const drafts = known.map((input, index) => ({ root: rootOf(index), input: ownedBy(caller, input) }))
    await checkInTargets(tx, caller, drafts, { rules, isDryRun })
  }
  return known
}

/** The input with its owner: the caller, unless it names one. */
export function ownedBy(caller: Pick<Caller, 'subject'>, input: CheckedInput): HookInput {
  return { ...input, ownerSubject: input.ownerSubject ?? caller.subject }
}

/** Maps inputs to results, and throws one `invalid_input` with the problems of all of them. */
export function mapInputs<Item, Result>(
  items: readonly Item[],
  rootOf: (index: number) => string,
  map: (item: Item, index: number) => Result,
): Result[] {
  const problems: Problem[] = []
  const results: Result[] = []
  for (const [index, item] of items.entries()) {
    try {
      results.push(map(item, index))
    } catch (error) {
      if (!(error instanceof CarillonError) || error.code !== 'invalid_input') throw error
      const root = rootOf(index)
      problems.push(...error.problems.map(({ path, message }) => ({ path: join(root, path), message })))
    }
  }
  if (problems.length > 0) throw invalidInput(problems)
  return results
}

/** What the database knows about inputs: at most three statements for any number of inputs, and none if no input needs one. */
interface InputFacts {
  readonly removedOwners: ReadonlySet<string>
  /** The named secrets that exist; undefined if no input names one, or if no check can tell. */
  readonly secrets: ReadonlySet<string> | undefined
  readonly grants: ReadonlyMap<string, Grant>
}

async function readFacts(
  tx: Tx,
  caller: Caller,
  checked: readonly CheckedInput[],
  rules: InputRules,
): Promise<InputFacts> {
  const scope = scopeOf(caller)
  const owners = distinct(checked.map(({ ownerSubject }) => (ownerSubject === caller.subject ? null : ownerSubject)))
  const grantIds = distinct(checked.map(({ grantId }) => grantId))
  return {
    removedOwners: owners.length === 0 ? new Set() : await listRemoved(tx, { ...scope, subjects: owners }),
    secrets: await findSecrets(tx, scope, checked, rules),
    grants: grantIds.length === 0 ? new Map() : await findGrants(tx, { ...scope, ids: grantIds }),
  }
}

function distinct(values: readonly (string | null)[]): string[] {
  return [...new Set(values)].filter((value) => value !== null)
}

async function findSecrets(
  tx: Tx,
  scope: Scope,
  checked: readonly CheckedInput[],
  { areSecretsElsewhere }: InputRules,
): Promise<ReadonlySet<string> | undefined> {
  if (areSecretsElsewhere) return undefined
  const names = new Set(checked.flatMap(({ secretRefs }) => secretRefs.map(({ name }) => name)))
  return names.size === 0 ? undefined : listKnownSecrets(tx, { ...scope, names: [...names] })
}

function withFacts(input: CheckedInput, { removedOwners, secrets, grants }: InputFacts, now: number): CheckedInput {
  if (input.ownerSubject !== null && removedOwners.has(input.ownerSubject)) {
    throw refusedOwner('a subject that was not removed from this project', input.ownerSubject)
  }
  requireKnownSecrets(input, secrets)
  if (input.grantId === null) return input
  const grant = grants.get(input.grantId.toLowerCase())
  requireGrant(grant, { scheduleId: null, requiredScope: input.requiredScope, now })
  return { ...input, grantId: grant.id, grantExpiresAt: grant.expiresAt }
}

/**
 * A caller that is a user may only create schedules that it owns itself. Otherwise a user could fill the quota of another user, or keep
 * its schedules running after its own removal.
 */
function requireOwnName(caller: Caller, { ownerSubject }: CheckedInput): void {
  if (ownerSubject === null || ownerSubject === caller.subject || !caller.subject.startsWith('user:')) return
  throw refusedOwner(`the caller, ${caller.subject}: a user owns what it makes`, ownerSubject)
}

function refusedOwner(expected: string, found: string): CarillonError {
  return invalidInput([{ path: 'ownerSubject', message: `expected ${expected}, got ${found}` }])
}

/**
 * Requires that the secrets which an input names exist. Without this check, a misspelt name would fail the first run, perhaps at night.
 * @throws CarillonError `invalid_input` with each secret that does not exist
 */
export async function requireSecrets(tx: Tx, caller: Caller, checked: CheckedInput, rules: InputRules): Promise<void> {
  requireKnownSecrets(checked, await findSecrets(tx, scopeOf(caller), [checked], rules))
}

function requireKnownSecrets({ secretRefs }: CheckedInput, known: ReadonlySet<string> | undefined): void {
  const problems = (known === undefined ? [] : secretRefs)
    .filter(({ name }) => known?.has(name) === false)
    .map(({ path, name }) => ({
      path: `target.${path}`,
      message: `expected the name of a secret of this project, got "${name}": store it first (PUT /secrets/{name})`,
    }))
  if (problems.length > 0) throw invalidInput(problems)
}

/** Checks every field of an input by itself. @throws CarillonError `invalid_input` with every field at fault */
function checkInput(input: unknown, rules: InputRules, caller: Caller): CheckedInput {
  const { name, cadence, target, policy, grantId, ownerSubject } = readFields(input, SCHEDULE_FIELDS)
  const checkedName = checkField(NAME, 'name', typeof name === 'string' ? name.trim() : name)
  const checkedCadence = rules.cadences.parseInput(cadence, rules)
  const parsedTarget = parseTarget(target, rules)
  const checkedPolicy =
    checkedCadence.ok && parsedTarget.ok
      ? checkPolicy(policy, checkedCadence.cadence, parsedTarget.value.handler, rules.cadences)
      : undefined
  const checkedGrant = checkField(GRANT_ID, 'grantId', grantId)
  const checkedOwner = checkField(OWNER, 'ownerSubject', ownerSubject)
  const owner = (checkedOwner.ok ? checkedOwner.value : undefined) ?? caller.subject
  const checkedTarget = parsedTarget.ok
    ? checkTarget(parsedTarget.value, { owner, policy: checkedPolicy }, rules)
    : parsedTarget
  if (
    !checkedName.ok ||
    !checkedCadence.ok ||
    !checkedTarget.ok ||
    checkedPolicy?.ok !== true ||
    !checkedGrant.ok ||
    !checkedOwner.ok
  ) {
    const all = [checkedName, checkedCadence, checkedTarget, checkedPolicy, checkedGrant, checkedOwner]
    throw invalidInput(all.flatMap((checked) => (checked === undefined || checked.ok ? [] : checked.problems)))
  }
  const { spec, handler } = checkedTarget.value
  return {
    name: checkedName.value,
    cadence: checkedCadence.cadence,
    target: spec,
    requiredScope: handler.requiredScope(spec),
    secretRefs: handler.secretRefs?.(spec) ?? [],
    policy: checkedPolicy.policy.policy,
    policyJson: checkedPolicy.policy.json,
    grantId: checkedGrant.value ?? null,
    grantExpiresAt: null,
    ownerSubject: checkedOwner.value ?? null,
  }
}

/**
 * Checks the content of a schedule after an edit. If the edit names no cadence, the minimum distance of slots is not checked again.
 * @throws CarillonError as `checkInput` does
 */
export function checkEdit(edit: unknown, content: ScheduleInput, rules: InputRules, caller: Caller): CheckedInput {
  const changes = Object.entries(readFields(edit, SCHEDULE_EDIT_FIELDS)).filter(([, value]) => value !== undefined)
  const hasCadence = changes.some(([field]) => field === 'cadence')
  const merged: Record<string, unknown> = { ...content, ...Object.fromEntries(changes) }
  if ('policy' in merged) merged['policy'] = mergePolicy(content.policy, merged['policy'])
  return checkInput(merged, hasCadence ? rules : { ...rules, minimumSeconds: 0 }, caller)
}

/** Merges an edited policy into the stored one, field by field. */
function mergePolicy(stored: unknown, edit: unknown): unknown {
  if (!isObject(stored) || !isObject(edit)) return edit
  const { retry } = edit
  return {
    ...stored,
    ...edit,
    retry: isObject(retry) && isObject(stored['retry']) ? { ...stored['retry'], ...retry } : (retry ?? stored['retry']),
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

type Checked<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly problems: Problem[] }

/** @throws CarillonError if the input is no object, or has other fields than these */
function readFields(input: unknown, fields: readonly string[]): Readonly<Record<string, unknown>> {
  requireJson(input)
  const unknown = Object.keys(input).filter((field) => !fields.includes(field))
  if (unknown.length > 0) {
    throw invalidInput(
      unknown.map((field) => ({
        path: foundName(field),
        message: unknownFieldText(field),
      })),
    )
  }
  return input as Readonly<Record<string, unknown>>
}

/** @throws CarillonError if the input is no object, or cannot be stored as JSON */
export function requireJson(input: unknown): asserts input is object {
  const fault = inputFault(input)
  if (fault !== undefined) throw invalidInput([{ path: '', message: fault }])
}

/** Why an input cannot be stored; undefined if it can. */
function inputFault(input: unknown): string | undefined {
  try {
    if (typeof input !== 'object' || input === null || Array.isArray(input)) {
      return expectedText('an object', input)
    }
    const { length } = JSON.stringify(input)
    return length > SCHEDULE_INPUT_MAX_LENGTH
      ? `expected at most ${SCHEDULE_INPUT_MAX_LENGTH} characters of JSON, got ${length}`
      : undefined
  } catch (error) {
    return `expected plain JSON, got a value that JSON cannot hold: ${error instanceof Error ? error.message : 'it throws'}`
  }
}

const NAME = storableText(SCHEDULE_NAME_MAX_LENGTH)
const GRANT_ID_SHAPE = expected('the id of a grant, a UUID')
const GRANT_ID = z.string(GRANT_ID_SHAPE).refine(isUuid, GRANT_ID_SHAPE).nullish()
const OWNER = typedSubject.optional()

function checkField<Value>(schema: z.ZodType<Value>, path: string, input: unknown): Checked<Value> {
  const parsed = schema.safeParse(input)
  return parsed.success ? { ok: true, value: parsed.data } : { ok: false, problems: schemaProblems(parsed.error, path) }
}

function refused(path: string, expected: string, input: unknown): Checked<never> {
  return { ok: false, problems: [{ path, message: expectedText(expected, input) }] }
}

interface ParsedTarget {
  readonly spec: { readonly kind: string }
  readonly handler: Target
}

function parseTarget(input: unknown, { targets }: InputRules): Checked<ParsedTarget> {
  const kinds = [...targets.keys()].join(', ')
  if (typeof input !== 'object' || input === null) {
    return refused('target', `an object whose kind is one of ${kinds}`, input)
  }
  const kind = 'kind' in input ? input.kind : undefined
  const handler = typeof kind === 'string' ? targets.get(kind) : undefined
  if (handler === undefined) return refused('target.kind', `one of ${kinds}`, kind)
  const spec = checkField(handler.schema, 'target', input)
  return spec.ok ? { ok: true, value: { spec: spec.value, handler } } : spec
}

/** Asks the target what is wrong beyond its shape. If the policy is wrong too, it is asked with the default policy of its kind. */
function checkTarget(
  { spec, handler }: ParsedTarget,
  { owner, policy: checkedPolicy }: { owner: string; policy: PolicyInputResult | undefined },
  { limits, cadences }: InputRules,
): Checked<ParsedTarget> {
  if (handler.check === undefined) return { ok: true, value: { spec, handler } }
  const result = checkedPolicy?.ok === true ? checkedPolicy : cadences.parsePolicyInput(undefined, defaultsOf(handler))
  const problems = result.ok
    ? handler.check({ ownerSubject: owner, spec, policy: result.policy.policy }, limits)
    : result.problems
  if (problems.length === 0) return { ok: true, value: { spec, handler } }
  return { ok: false, problems: problems.map(({ path, message }) => ({ path: join('target', path), message })) }
}

function checkPolicy(
  input: unknown,
  { rule }: ParsedCadence,
  target: Target,
  cadences: CadenceCache,
): PolicyInputResult {
  const result = cadences.parsePolicyInput(input, defaultsOf(target, rule.kind))
  if (!result.ok) return result
  const { idempotencyRetentionSeconds } = target
  const { retry } = result.policy.policy
  const problem =
    idempotencyRetentionSeconds === undefined ? null : checkKeyRetention({ retry, idempotencyRetentionSeconds })
  return problem === null ? result : { ok: false, problems: [problem] }
}

function defaultsOf({ policy }: Target, cadenceKind: PolicyDefaults['cadenceKind'] = 'cron'): PolicyDefaults {
  return { cadenceKind, policy }
}

function join(root: string, path: string): string {
  return root === '' || path === '' ? root + path : `${root}.${path}`
}
