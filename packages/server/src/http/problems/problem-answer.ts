import { PROBLEM_TYPES, problemTypeUri, RETRY_AFTER_PROBLEMS, type Problem } from '@carillon/api'

import type { ProblemError } from './problem-error.ts'

const PROBLEM_MEDIA_TYPE = 'application/problem+json'
/** Unless the problem says more precisely. */
const RETRY_AFTER_SECONDS = '1'

export interface ProblemAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Problem
}

/** A problem as RFC 9457 writes it. */
export function problemAnswer(
  { code, status, message, errors, headers }: ProblemError,
  requestId: string,
): ProblemAnswer {
  return {
    status,
    headers: {
      'content-type': PROBLEM_MEDIA_TYPE,
      ...(RETRY_AFTER_PROBLEMS.includes(code) ? { 'retry-after': RETRY_AFTER_SECONDS } : {}),
      ...headers,
    },
    body: {
      type: problemTypeUri(code),
      code,
      title: PROBLEM_TYPES[code].title,
      status,
      detail: message,
      instance: `/requests/${requestId}`,
      errors: [...errors],
    },
  }
}
