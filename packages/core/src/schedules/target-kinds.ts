import { messageOf } from '@carillon/api'
import { CADENCE_KINDS } from '@carillon/cadence'
import { z } from 'zod'

import { resolvePolicy, type SchedulePolicy } from '../policy/schedule-policy.ts'
import type { Target } from '../ports/target.ts'
import type { SchedulerContext } from './context.ts'

/** A kind of target, as documents and forms show it. */
export interface TargetKind {
  readonly kind: string
  readonly title: string
  /** The JSON Schema of the whole `target` object of a schedule. */
  readonly schema: Readonly<Record<string, unknown>>
  /** The policy that a schedule gets if it names none, for each group of cadence kinds with the same one. */
  readonly policies: readonly { readonly cadenceKinds: readonly string[]; readonly policy: SchedulePolicy }[]
  readonly scopePattern: string | null
  readonly hasHooks: boolean
  readonly example: Readonly<Record<string, unknown>> | null
}

/** The kinds that schedules can name, sorted by name. */
export function listTargetKinds({ targets }: Pick<SchedulerContext, 'targets'>): TargetKind[] {
  return [...targets.values()].toSorted((a, b) => (a.kind < b.kind ? -1 : 1)).map(describeKind)
}

function describeKind(target: Target): TargetKind {
  const { kind, title = kind, scopePattern = null, example } = target
  return {
    kind,
    title,
    schema: schemaOf(target),
    policies: policiesOf(target),
    scopePattern,
    hasHooks: target.admit !== undefined || target.settled !== undefined,
    example: example === undefined ? null : { ...example },
  }
}

/** A kind whose schema cannot be shown is listed anyway: forms then offer plain JSON. */
function schemaOf({ schema }: Target): Readonly<Record<string, unknown>> {
  try {
    const { $schema: _dialect, ...shown } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
    return shown
  } catch (error) {
    return { type: 'object', description: `This schema cannot be shown: ${messageOf(error)}` }
  }
}

function policiesOf({ policy: ofKind }: Target): TargetKind['policies'] {
  const resolved = CADENCE_KINDS.flatMap((cadenceKind) => {
    const result = resolvePolicy(undefined, { cadenceKind, policy: ofKind })
    return result.ok ? [{ cadenceKind, policy: result.policy }] : []
  })
  const groups = Map.groupBy(resolved, ({ policy }) => JSON.stringify(policy))
  return [...groups.values()].flatMap((group) => {
    const [first] = group
    return first === undefined
      ? []
      : [{ cadenceKinds: group.map(({ cadenceKind }) => cadenceKind), policy: first.policy }]
  })
}
