import {
  AUTO_PAUSE_THRESHOLD,
  OVERLAP_DEFAULT,
  policySchema,
  retryPolicySchema,
  SPREAD_SECONDS,
  STARTING_DEADLINE_SECONDS,
  strictPolicyInputSchema,
  type Policy,
  type RetryPolicy,
} from '@carillon/api'
import type { CadenceKind } from '@carillon/cadence'
import type { z } from 'zod'

import { schemaProblems } from '../kernel/checked-object.ts'
import type { Problem } from '../kernel/errors.ts'
import type { TargetPolicy } from '../ports/target.ts'

/** A schedule's policy with every default filled in: what is stored, and what every decision reads. */
export type SchedulePolicy = Readonly<Policy>

/** The facts about a schedule that the defaults of its policy depend on. */
export interface PolicyDefaults {
  readonly cadenceKind: CadenceKind
  /** What the target's kind sets. */
  readonly policy: TargetPolicy
}

export type PolicyResult =
  | { readonly ok: true; readonly policy: SchedulePolicy }
  | { readonly ok: false; readonly problems: readonly Problem[] }

const CAP_BELOW_BASE = { error: 'expected capSeconds to be at least baseSeconds, got less' }

const RETRY = retryPolicySchema.refine(isCapAboveBase, CAP_BELOW_BASE)

/** The defaults that a kind of target may set: any fields of a policy, and always those of retries. */
const KIND_POLICY = policySchema.omit({ runLimit: true }).partial().extend({ retry: RETRY })

/** Ignores unknown fields: while a fleet is upgraded, old workers read policies that new ones wrote. */
const STORED_POLICY = policySchema.extend({ retry: RETRY })

/**
 * Fills in the defaults of a caller's policy, or lists everything that is wrong with it.
 * Throws if the policy of the target's kind is invalid: stored as a default, it could not be read again.
 */
export function resolvePolicy(input: unknown, defaults: PolicyDefaults): PolicyResult {
  const { cadenceKind, policy: ofKind } = defaults
  parseOrThrow(KIND_POLICY, 'policy', ofKind, "a target's policy cannot be a default")
  const parsed = strictPolicyInputSchema.safeParse(input === undefined ? {} : input)
  if (!parsed.success) return { ok: false, problems: schemaProblems(parsed.error, 'policy') }
  const { data } = parsed
  const retry = {
    maxAttempts: data.retry?.maxAttempts ?? ofKind.retry.maxAttempts,
    baseSeconds: data.retry?.baseSeconds ?? ofKind.retry.baseSeconds,
    capSeconds: data.retry?.capSeconds ?? ofKind.retry.capSeconds,
  }
  if (retry.capSeconds < retry.baseSeconds) {
    return { ok: false, problems: [capBelowBase(retry, data.retry?.capSeconds === undefined)] }
  }
  const policy: SchedulePolicy = {
    overlap: data.overlap ?? ofKind.overlap ?? OVERLAP_DEFAULT,
    missed: data.missed ?? ofKind.missed ?? (cadenceKind === 'once' ? 'run_once' : 'skip'),
    startingDeadlineSeconds:
      data.startingDeadlineSeconds ?? ofKind.startingDeadlineSeconds ?? STARTING_DEADLINE_SECONDS.default,
    retry,
    autoPauseThreshold: data.autoPauseThreshold ?? ofKind.autoPauseThreshold ?? AUTO_PAUSE_THRESHOLD.default,
    spreadSeconds: data.spreadSeconds ?? ofKind.spreadSeconds ?? SPREAD_SECONDS.default,
    // Absent if there is no limit, as in policies that earlier releases stored.
    ...(data.runLimit === undefined || data.runLimit === null ? {} : { runLimit: data.runLimit }),
  }
  return { ok: true, policy }
}

/** Reads a stored policy. Throws if `resolvePolicy` did not write it. */
export function readPolicy(json: unknown): SchedulePolicy {
  return parseOrThrow(STORED_POLICY, 'policy', json, 'a stored policy cannot be read')
}

function parseOrThrow<T>(schema: z.ZodType<T>, root: string, value: unknown, complaint: string): T {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const problems = schemaProblems(parsed.error, root).map(({ path, message }) => `${path}: ${message}`)
  throw new Error(`${complaint}: ${problems.join('; ')}`)
}

/** Names the field that the caller wrote; the other may be the target's default. */
function capBelowBase({ baseSeconds, capSeconds }: RetryPolicy, isCapDefault: boolean): Problem {
  return isCapDefault
    ? {
        path: 'policy.retry.baseSeconds',
        message: `expected at most ${capSeconds}, the default of capSeconds, got ${baseSeconds}: raise capSeconds too`,
      }
    : {
        path: 'policy.retry.capSeconds',
        message: `expected at least baseSeconds, which is ${baseSeconds}, got ${capSeconds}`,
      }
}

function isCapAboveBase({ baseSeconds, capSeconds }: RetryPolicy): boolean {
  return capSeconds >= baseSeconds
}

/** True if a schedule may begin no further run. `runCount` counts the runs that began, those on demand included. */
export function isUsedUp({ runLimit }: Pick<SchedulePolicy, 'runLimit'>, runCount: number): boolean {
  // At least, not exactly: the limit may have been lowered below the count.
  return runLimit !== undefined && runCount >= runLimit
}

/** The `paused_reason` of a schedule that paused itself after too many failures. A person's reason cannot begin with `auto:`. */
export const AUTO_PAUSE_REASON = 'auto:consecutive_failures'

/**
 * True if a schedule pauses itself. `consecutiveFailures` counts runs that failed for good: an attempt that will be retried does not
 * count, and a success resets the count.
 */
export function shouldAutoPause({
  threshold,
  consecutiveFailures,
}: {
  readonly threshold: number
  readonly consecutiveFailures: number
}): boolean {
  // At least, not exactly: the threshold may have been lowered below the count.
  return threshold !== 0 && consecutiveFailures >= threshold
}
