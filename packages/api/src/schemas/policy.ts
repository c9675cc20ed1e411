import { z } from 'zod'

import { component } from '../component.ts'
import { expected } from '../expected.ts'
import {
  AUTO_PAUSE_THRESHOLD,
  RETRY_ATTEMPTS,
  RUN_LIMIT,
  BACKOFF_SECONDS,
  SPREAD_SECONDS,
  STARTING_DEADLINE_SECONDS,
} from '../limits.ts'
import { MISSED_POLICIES, OVERLAP_POLICIES } from '../words.ts'
import { wholeNumber } from './fields.ts'

const OBJECT = expected('an object')

const { min: THRESHOLD_MIN, max: THRESHOLD_MAX } = AUTO_PAUSE_THRESHOLD
const THRESHOLD = expected(`0 (never) or a whole number from ${THRESHOLD_MIN} to ${THRESHOLD_MAX}`)

const fields = {
  overlap: z
    .enum(OVERLAP_POLICIES, expected(`one of ${OVERLAP_POLICIES.join(', ')}`))
    .meta({ description: 'What happens to a slot while the run before it is under way.' }),
  missed: z
    .enum(MISSED_POLICIES, expected(`one of ${MISSED_POLICIES.join(', ')}`))
    .meta({ description: 'What happens to a slot that could not begin in time.' }),
  startingDeadlineSeconds: wholeNumber(STARTING_DEADLINE_SECONDS).meta({ description: 'How late a slot may begin.' }),
  autoPauseThreshold: z
    .union([z.literal(0), z.int(THRESHOLD).min(THRESHOLD_MIN, THRESHOLD).max(THRESHOLD_MAX, THRESHOLD)], THRESHOLD)
    .meta({ description: 'Failed runs in a row after which the schedule pauses itself; 0 is never.' }),
  spreadSeconds: wholeNumber(SPREAD_SECONDS).meta({
    description: 'Schedules with the same slot are spread over this many seconds.',
  }),
}

const RUN_LIMIT_TEXT =
  'The schedule is complete once this many runs have begun, those on demand included. Slots that do not run do not count.'

/**
 * How often a run is tried, and how long it waits in between. Does not check that `capSeconds` is at least `baseSeconds`, because a
 * request may leave either to its default.
 */
export const retryPolicy = z.object(
  {
    /** How often a run is tried, the first time included. */
    maxAttempts: wholeNumber(RETRY_ATTEMPTS),
    /** The backoff before the second attempt; it doubles with each further one. */
    baseSeconds: wholeNumber(BACKOFF_SECONDS),
    /** The longest backoff. */
    capSeconds: wholeNumber(BACKOFF_SECONDS),
  },
  OBJECT,
)

/** The policy in an answer: every field is present. */
export const policy = component(
  'Policy',
  z.object(
    {
      ...fields,
      retry: retryPolicy,
      runLimit: wholeNumber(RUN_LIMIT)
        .optional()
        .meta({ description: `${RUN_LIMIT_TEXT} Absent: there is no limit.` }),
    },
    OBJECT,
  ),
  'How a schedule behaves.',
)

/** The policy in a request: any part of it. */
export const policyInput = component(
  'PolicyInput',
  z
    .object(
      {
        ...fields,
        retry: retryPolicy.partial(),
        runLimit: wholeNumber(RUN_LIMIT, ', or null for none')
          .nullable()
          .meta({ description: `${RUN_LIMIT_TEXT} Null: there is no limit.` }),
      },
      OBJECT,
    )
    .partial(),
  'Any part of a policy; the rest is default.',
)

/**
 * `policyInput` as it is enforced: a misspelt field is refused. The documented schema allows other fields, so that a client
 * generated from this release accepts the fields of a later one.
 */
export const strictPolicyInput = policyInput.extend({ retry: retryPolicy.partial().strict().optional() }).strict()

export type RetryPolicy = Readonly<z.infer<typeof retryPolicy>>
export type Policy = z.infer<typeof policy>
export type PolicyInput = z.input<typeof policyInput>
