import type { CadenceKind } from '@carillon/cadence'
import { z } from 'zod'

import type { Problem } from '../problem.ts'
import { isThreshold } from './auto-pause.ts'
import { foundText } from './found-text.ts'
import { MISSED_POLICIES, type MissedPolicy } from './missed.ts'
import { OVERLAP_POLICIES, type OverlapPolicy } from './overlap.ts'
import type { RetryPolicy } from './retry.ts'
import { schemaProblems } from './schema-problems.ts'

/** A schedule's policy with nothing left open: what is stored, and what every decision reads. */
export interface SchedulePolicy {
  /** @default 'forbid' */
  readonly overlap: OverlapPolicy
  /** @default 'skip'; 'run_once' for a cadence of kind `once` */
  readonly missed: MissedPolicy
  /** How late a slot may begin before it is missed. 1..604800 @default 300 */
  readonly startingDeadlineSeconds: number
  /** @default what the kind of the target says, field by field */
  readonly retry: RetryPolicy
  /** Consecutive failed runs after which the schedule pauses itself; 0 is never. 0, 3..100 @default 10 */
  readonly autoPauseThreshold: number
  /** Over how many seconds schedules with the same slot are spread. 0..3600 @default 0 */
  readonly spreadSeconds: number
}

/** What a policy falls back to where it says nothing and the answer is not the same for all. */
export interface PolicyDefaults {
  readonly cadenceKind: CadenceKind
  /** Of the target's kind. */
  readonly retry: RetryPolicy
}

export type PolicyResult =
  | { readonly ok: true; readonly policy: SchedulePolicy }
  | { readonly ok: false; readonly problems: readonly Problem[] }

const STARTING_DEADLINE_DEFAULT_SECONDS = 300
const AUTO_PAUSE_THRESHOLD_DEFAULT = 10
const SPREAD_DEFAULT_SECONDS = 0

const threshold = expected('0 (never) or a whole number from 3 to 100')

const RETRY_FIELDS = z.strictObject(
  {
    maxAttempts: wholeNumber(1, 100),
    baseSeconds: wholeNumber(1, 86_400),
    capSeconds: wholeNumber(1, 86_400),
  },
  expected('an object'),
)

const CAP_BELOW_BASE = { error: 'expected capSeconds to be at least baseSeconds, got less' }

const RETRY = RETRY_FIELDS.refine(isCapAboveBase, CAP_BELOW_BASE)

const POLICY = z.strictObject(
  {
    overlap: z.enum(OVERLAP_POLICIES, expected(`one of ${OVERLAP_POLICIES.join(', ')}`)),
    missed: z.enum(MISSED_POLICIES, expected(`one of ${MISSED_POLICIES.join(', ')}`)),
    startingDeadlineSeconds: wholeNumber(1, 604_800),
    retry: RETRY,
    autoPauseThreshold: z.number(threshold).refine(isThreshold, threshold),
    spreadSeconds: wholeNumber(0, 3600),
  },
  expected('an object'),
)

/** What a user writes: any part of it. */
const POLICY_INPUT = POLICY.extend({ retry: RETRY_FIELDS.partial() }).partial()

/**
 * Fills in what a user's `policy` leaves open, all of it if there is none, or says everything that is wrong with it.
 * Throws if the target's own retry policy is no valid one: stored as a default, it could not be read again.
 */
export function resolvePolicy(input: unknown, defaults: PolicyDefaults): PolicyResult {
  parseOrThrow(RETRY, 'retry', defaults.retry, "a target's retry policy cannot be a default")
  const parsed = POLICY_INPUT.safeParse(input === undefined ? {} : input)
  if (!parsed.success) return { ok: false, problems: schemaProblems(parsed.error, 'policy') }
  const { data } = parsed
  const retry = {
    maxAttempts: data.retry?.maxAttempts ?? defaults.retry.maxAttempts,
    baseSeconds: data.retry?.baseSeconds ?? defaults.retry.baseSeconds,
    capSeconds: data.retry?.capSeconds ?? defaults.retry.capSeconds,
  }
  if (retry.capSeconds < retry.baseSeconds) {
    return { ok: false, problems: [capBelowBase(retry, data.retry?.capSeconds === undefined)] }
  }
  const policy: SchedulePolicy = {
    overlap: data.overlap ?? 'forbid',
    missed: data.missed ?? (defaults.cadenceKind === 'once' ? 'run_once' : 'skip'),
    startingDeadlineSeconds: data.startingDeadlineSeconds ?? STARTING_DEADLINE_DEFAULT_SECONDS,
    retry,
    autoPauseThreshold: data.autoPauseThreshold ?? AUTO_PAUSE_THRESHOLD_DEFAULT,
    spreadSeconds: data.spreadSeconds ?? SPREAD_DEFAULT_SECONDS,
  }
  return { ok: true, policy }
}

/** What is stored may know more than this code: while a fleet is upgraded, old workers read what new ones wrote. */
const STORED_POLICY = z.object(
  {
    ...POLICY.shape,
    retry: z.object(RETRY_FIELDS.shape, expected('an object')).refine(isCapAboveBase, CAP_BELOW_BASE),
  },
  expected('an object'),
)

/** Reads a policy as it was stored. Throws if it is none: then the row was not written by `resolvePolicy`. */
export function readPolicy(json: unknown): SchedulePolicy {
  return parseOrThrow(STORED_POLICY, 'policy', json, 'a stored policy cannot be read')
}

function parseOrThrow<T>(schema: z.ZodType<T>, root: string, value: unknown, complaint: string): T {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const problems = schemaProblems(parsed.error, root).map(({ path, message }) => `${path}: ${message}`)
  throw new Error(`${complaint}: ${problems.join('; ')}`)
}

/** The field at fault is the one the user wrote; the other may be the target's default. */
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

function wholeNumber(min: number, max: number) {
  const range = expected(`a whole number from ${min} to ${max}`)
  return z.int(range).min(min, range).max(max, range)
}

/** For zod: what to say about a value of another shape. A field too many is told apart in `schemaProblems`. */
function expected(shape: string) {
  return { error: ({ input }: { readonly input?: unknown }) => `expected ${shape}, got ${foundText(input)}` }
}
