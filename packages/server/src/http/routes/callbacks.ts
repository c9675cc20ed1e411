import { foundText } from '@carillon/api'
import type { Completion } from '@carillon/core'

import type { HandlersOf } from '../operation-handlers.ts'
import { ProblemError } from '../problems.ts'

/** How long a caller waits before it completes a run again that waits to be tried: by then the next attempt may have begun. */
const RETRY_AFTER_SECONDS = 5

/** What called services do with runs that they work on. The token of the run proves them. */
export const callbackHandlers: HandlersOf<'completeRun' | 'heartbeatRun'> = {
  completeRun: async ({ service: { callbacks }, params: { id }, query, headers, body }) => {
    const attempt = Number(query.attempt)
    // The schema has checked the body. Its `result` is JSON, because it was parsed from JSON.
    const answer = await callbacks.complete({ runId: id, attempt, token: tokenOf(headers) }, body as Completion)
    if (answer.kind === 'unknown') throw noSuchRun(id)
    if (answer.kind === 'conflict') throw notAwaited(answer.state, 'a completion')
    return { body: { runId: id, attempt } }
  },

  heartbeatRun: async ({ service: { callbacks }, params: { id }, headers }) => {
    const answer = await callbacks.heartbeat({ runId: id, token: tokenOf(headers) })
    if (answer.kind === 'unknown') throw noSuchRun(id)
    if (answer.kind === 'conflict') throw notAwaited(answer.state, 'a heartbeat')
    return { body: { runId: id, timeoutSeconds: answer.deadlineMs / 1000 } }
  },
}

function tokenOf({ authorization }: { readonly authorization: string }): string {
  return /^Bearer (?<token>\S+)$/i.exec(authorization)?.groups?.['token'] ?? ''
}

/** I9: without the token of the run, a caller must not learn whether it exists. */
function noSuchRun(id: string): ProblemError {
  return new ProblemError(
    'run_not_found',
    `expected the id of a run and its token, got ${foundText(id)} and another token`,
  )
}

function notAwaited(state: string, what: string): ProblemError {
  const detail = `expected a run that waits for ${what}, got one that is ${state}, or that another completion has ended`
  const isTriedAgain = state === 'pending' || state === 'retrying'
  return new ProblemError(
    'state_conflict',
    detail,
    isTriedAgain ? { headers: { 'retry-after': String(RETRY_AFTER_SECONDS) } } : {},
  )
}
