import { z } from 'zod'

import { component } from '../component.ts'
import { expected } from '../expected.ts'
import { CALLBACK_TOKEN_MAX_LENGTH, RETRY_ATTEMPTS } from '../limits.ts'
import { json, storableText } from './fields.ts'

const CODE_SHAPE = expected('a short word for a program: letters, digits, dots, underscores and hyphens')
const MESSAGE_MAX_LENGTH = 1000

const attemptError = z.strictObject(
  {
    code: z.string(CODE_SHAPE).regex(/^[\w.-]{1,64}$/, CODE_SHAPE),
    message: storableText(MESSAGE_MAX_LENGTH),
    detail: json.optional().meta({ description: 'What a program may want to know.' }),
  },
  expected('an object with code and message'),
)

/** How the called service says that the work of a run is over. */
export const completion = component(
  'Completion',
  z.discriminatedUnion(
    'outcome',
    [
      z.strictObject({
        outcome: z.literal('succeeded'),
        result: json.optional().meta({ description: 'What the work came to. The attempt in the ledger shows it.' }),
      }),
      z.strictObject({
        outcome: z.literal('failed'),
        error: attemptError,
        retryable: z
          .boolean(expected('true or false'))
          .optional()
          .meta({ description: 'Whether the retry policy of the schedule applies. The default is true.' }),
      }),
    ],
    expected('an object whose outcome is succeeded or failed'),
  ),
)

const digits = `a whole number from ${RETRY_ATTEMPTS.min} to ${RETRY_ATTEMPTS.max}`

/** The query of the URL that the request carried: which attempt was asked to do the work. */
export const completionQuery = z.strictObject({
  attempt: z
    .string(expected(digits))
    .regex(/^(?:[1-9]\d?|100)$/, expected(digits))
    .meta({ description: 'The attempt, as the URL in `Carillon-Callback` names it.' }),
})

/** The token of the run, in place of an API key. */
export const callbackHeaders = z.object({
  authorization: z
    .string(expected('the token of the run: "Authorization: Bearer <Carillon-Callback-Token>"'))
    .max(CALLBACK_TOKEN_MAX_LENGTH, expected('the token of the run'))
    .meta({ description: '`Bearer` and the token in `Carillon-Callback-Token`, which is the same on every attempt.' }),
})

export const completedRun = component(
  'CompletedRun',
  z.object({ runId: z.uuid(), attempt: z.int() }),
  'The completion is taken. The ledger shows the end of the run within milliseconds.',
)

export const extendedRun = component(
  'ExtendedRun',
  z.object({
    runId: z.uuid(),
    timeoutSeconds: z.number().meta({ description: 'For how long the run waits from now on.' }),
  }),
)
