import { parse, type Cadence } from '@carillon/cadence'

import { invalidInput } from '../errors.ts'
import { foundName, foundText } from '../policy/found-text.ts'
import { checkRetention } from '../policy/retention.ts'
import type { SchedulePolicy } from '../policy/schedule-policy.ts'
import { schemaProblems } from '../policy/schema-problems.ts'
import type { Problem } from '../problem.ts'
import type { Target, TargetLimits } from '../target.ts'
import { isUuid } from '../uuid.ts'
import type { KnownInputs } from './known-inputs.ts'
import { isNameableSubject, isStorable } from './stored-text.ts'

/** What a user writes to make a schedule. */
export interface ScheduleInput {
  readonly name: string
  /** See @carillon/cadence. */
  readonly cadence: unknown
  /** `kind`, and what a target of that kind wants to know. */
  readonly target: unknown
  /** Any part of it; the rest is default. */
  readonly policy?: unknown
  /** By what right it runs. @default a grant of its own, which carries exactly what its target needs */
  readonly grantId?: string | null | undefined
  /** Whose it is. @default the caller */
  readonly ownerSubject?: string | undefined
}

/** What may be changed later; what is left out stays. A grant that is null becomes one of its own. */
export type ScheduleEdit = Partial<Pick<ScheduleInput, 'name' | 'cadence' | 'target' | 'policy'>> & {
  readonly grantId?: string | null | undefined
}

/** An input that holds: everything checked, every default filled in. */
export interface CheckedInput {
  readonly name: string
  readonly cadence: Cadence
  readonly target: { readonly kind: string }
  /** What a grant must carry for this target. */
  readonly requiredScope: string
  readonly policy: SchedulePolicy
  readonly secretRefs: readonly { readonly path: string; readonly name: string }[]
  /** Null: one of its own. */
  readonly grantId: string | null
  readonly ownerSubject: string | null
}

export interface CadenceContext {
  readonly now: number
  readonly minimumSeconds: number
}

export interface InputContext extends CadenceContext {
  readonly targets: ReadonlyMap<string, Target>
  /** What the tenant's targets are held to. */
  readonly limits: TargetLimits
  readonly known: KnownInputs
}

const NAME_MAX_LENGTH = 200
/** Of the whole input as JSON. What is larger belongs where the target finds it by name. */
const INPUT_MAX_LENGTH = 1_048_576
const EDITABLE = ['name', 'cadence', 'target', 'policy', 'grantId']
const FIELDS = [...EDITABLE, 'ownerSubject']

/** @throws CarillonError `invalid_input`, with every field at fault; nothing was written */
export function checkInput(input: unknown, context: InputContext): CheckedInput {
  const { name, cadence, target, policy, grantId, ownerSubject } = readFields(input, FIELDS)
  const checkedName = checkName(name)
  const known = context.known.cadence(cadence, context.minimumSeconds)
  const checkedCadence = known === undefined ? checkCadence(cadence, context) : { ok: true as const, value: known }
  const checkedTarget = checkTarget(target, context)
  const checkedPolicy =
    checkedCadence.ok && checkedTarget.ok
      ? checkPolicy(policy, checkedCadence.value, checkedTarget.value.handler, context.known)
      : undefined
  const checkedGrant = checkGrantId(grantId)
  const checkedOwner = checkSubject(ownerSubject)
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
  return {
    name: checkedName.value,
    cadence: checkedCadence.value,
    target: checkedTarget.value.spec,
    requiredScope: checkedTarget.value.handler.requiredScope(checkedTarget.value.spec),
    secretRefs: checkedTarget.value.handler.secretRefs?.(checkedTarget.value.spec) ?? [],
    policy: checkedPolicy.value,
    grantId: checkedGrant.value,
    ownerSubject: checkedOwner.value,
  }
}

/**
 * What a schedule says after an edit. A cadence that stays was accepted once, so no limit of today refuses it.
 * @throws CarillonError as `checkInput` does
 */
export function checkEdit(edit: unknown, content: ScheduleInput, context: InputContext): CheckedInput {
  const changes = Object.entries(readFields(edit, EDITABLE)).filter(([, value]) => value !== undefined)
  const hasCadence = changes.some(([field]) => field === 'cadence')
  const merged: Record<string, unknown> = { ...content, ...Object.fromEntries(changes) }
  if ('policy' in merged) merged['policy'] = mergePolicy(content.policy, merged['policy'])
  return checkInput(merged, hasCadence ? context : { ...context, minimumSeconds: 0 })
}

/** What an edit of a policy leaves out stays, field by field. */
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

export function checkCadence(input: unknown, { now, minimumSeconds }: CadenceContext): Checked<Cadence> {
  const result = parse(input, { now, minimumSeconds })
  if (result.ok) return { ok: true, value: result.cadence }
  return {
    ok: false,
    problems: result.problems.map(({ field, message }) => ({ path: join('cadence', field), message })),
  }
}

/** The fields of an object of which no others are known, whatever was given. */
function readFields(input: unknown, fields: readonly string[]): Readonly<Record<string, unknown>> {
  requireJson(input)
  const unknown = Object.keys(input).filter((field) => !fields.includes(field))
  if (unknown.length > 0) {
    throw invalidInput(
      unknown.map((field) => ({
        path: foundName(field),
        message: `expected no such field, got "${foundName(field)}": leave it out, or correct its name`,
      })),
    )
  }
  return input as Readonly<Record<string, unknown>>
}

/** @throws CarillonError if it is no object, or cannot be kept as JSON */
export function requireJson(input: unknown): asserts input is object {
  const fault = jsonFault(input)
  if (fault !== undefined) throw invalidInput([{ path: '', message: fault }])
}

/** Why an input cannot be kept as it is, before anything of it is looked at; undefined if it can. */
function jsonFault(input: unknown): string | undefined {
  try {
    if (typeof input !== 'object' || input === null || Array.isArray(input)) {
      return `expected an object, got ${foundText(input)}`
    }
    const { length } = JSON.stringify(input)
    return length > INPUT_MAX_LENGTH
      ? `expected at most ${INPUT_MAX_LENGTH} characters of JSON, got ${length}`
      : undefined
  } catch (error) {
    return `expected plain JSON, got what cannot be written as such: ${error instanceof Error ? error.message : 'it throws'}`
  }
}

function checkName(input: unknown): Checked<string> {
  const name = typeof input === 'string' ? input.trim() : ''
  if (name !== '' && name.length <= NAME_MAX_LENGTH && isStorable(name)) return { ok: true, value: name }
  return refused('name', `a text of 1 to ${NAME_MAX_LENGTH} characters, none of them U+0000`, input)
}

function checkGrantId(input: unknown): Checked<string | null> {
  if (input === undefined || input === null) return { ok: true, value: null }
  if (isUuid(input)) return { ok: true, value: input }
  return refused('grantId', 'the id of a grant, a UUID', input)
}

function checkSubject(input: unknown): Checked<string | null> {
  if (input === undefined) return { ok: true, value: null }
  if (typeof input === 'string' && isNameableSubject(input)) return { ok: true, value: input }
  return refused('ownerSubject', 'a typed subject such as user:alice', input)
}

function refused(path: string, expected: string, input: unknown): Checked<never> {
  return { ok: false, problems: [{ path, message: `expected ${expected}, got ${foundText(input)}` }] }
}

function checkTarget(
  input: unknown,
  { targets, limits }: InputContext,
): Checked<{ spec: { readonly kind: string }; handler: Target }> {
  const kinds = [...targets.keys()].join(', ')
  if (typeof input !== 'object' || input === null) {
    return refused('target', `an object whose kind is one of ${kinds}`, input)
  }
  const kind = 'kind' in input ? input.kind : undefined
  const handler = typeof kind === 'string' ? targets.get(kind) : undefined
  if (handler === undefined) return refused('target.kind', `one of ${kinds}`, kind)
  const spec = handler.schema.safeParse(input)
  if (!spec.success) return { ok: false, problems: schemaProblems(spec.error, 'target') }
  const problems = handler.check?.(spec.data, limits) ?? []
  if (problems.length === 0) return { ok: true, value: { spec: spec.data, handler } }
  return { ok: false, problems: problems.map(({ path, message }) => ({ path: join('target', path), message })) }
}

function checkPolicy(input: unknown, cadence: Cadence, target: Target, known: KnownInputs): Checked<SchedulePolicy> {
  const result = known.policy(input, { cadenceKind: cadence.kind, retry: target.retry })
  if (!result.ok) return { ok: false, problems: [...result.problems] }
  const { idempotencyRetentionSeconds } = target
  const { retry } = result.policy
  const problem =
    idempotencyRetentionSeconds === undefined ? null : checkRetention({ retry, idempotencyRetentionSeconds })
  return problem === null ? { ok: true, value: result.policy } : { ok: false, problems: [problem] }
}

function join(root: string, path: string): string {
  return path === '' ? root : `${root}.${path}`
}
