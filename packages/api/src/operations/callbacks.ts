import type { Operation } from '../operation.ts'
import { callbackHeaders, completedRun, completion, completionQuery, extendedRun } from '../schemas/completion.ts'
import { idParams } from './parameters.ts'

const PROOF =
  'The token of the run proves the caller: no key is needed. A wrong token is answered as if there were no such run.'

/** What a called service does with a run that it works on. */
export const callbackOperations = {
  completeRun: {
    method: 'post',
    path: '/runs/{id}/complete',
    tag: 'runs',
    summary: 'Complete a run by its callback',
    description:
      'Ends a run whose target passed the work on. The first completion of an attempt wins: the same one again gets the same answer, ' +
      `another one is refused. It may come before the response to the request. ${PROOF}`,
    access: 'own',
    params: idParams,
    query: completionQuery,
    headers: callbackHeaders,
    body: completion,
    success: { status: 200, description: 'The completion is taken.', schema: completedRun },
    problems: ['run_not_found', 'state_conflict'],
  },
  heartbeatRun: {
    method: 'post',
    path: '/runs/{id}/heartbeat',
    tag: 'runs',
    summary: 'Move the deadline of a run',
    description: `The run waits for its callback for its whole callback timeout again, counted from now. ${PROOF}`,
    access: 'own',
    params: idParams,
    headers: callbackHeaders,
    success: { status: 200, description: 'The deadline is moved.', schema: extendedRun },
    problems: ['run_not_found', 'state_conflict'],
  },
} as const satisfies Readonly<Record<string, Operation>>
