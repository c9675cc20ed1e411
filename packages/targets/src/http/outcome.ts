import { STATUS_CODES } from 'node:http'

import type { Outcome } from '@carillon/core'

import { answerJson } from './answer-json.ts'
import { headerOf, type Answer, type ExchangeEnd } from './exchange.ts'
import { retryAfterMs } from './retry-after.ts'

export interface OutcomeClock {
  readonly now: () => number
  /** No longer wait is asked for. */
  readonly retryAfterMaxMs: number
}

/** What an exchange comes to for the run. */
export function outcomeOf(end: ExchangeEnd, clock: OutcomeClock): Outcome {
  switch (end.kind) {
    case 'left':
      return { kind: 'cancelled' }
    case 'answered':
      return outcomeOfAnswer(end.answer, clock)
    case 'broken':
      // A refusal is one even if its body never came; a success is none before it is complete.
      return end.answer === undefined || isSuccess(end.answer)
        ? outcomeOfError(end.error)
        : outcomeOfAnswer(end.answer, clock)
  }
}

function outcomeOfAnswer(answer: Answer, clock: OutcomeClock): Outcome {
  const { status } = answer
  if (isSuccess(answer)) return { kind: 'succeeded', result: answerJson(answer) }
  const said = `The target answered ${status}${STATUS_CODES[status] === undefined ? '' : ` ${STATUS_CODES[status]}`}`
  if (status >= 300 && status < 400) {
    // Whoever answers could send the request, its key and its payload, to a host that nobody allowed.
    const message = `${said}. Redirects are not followed: name the final URL.`
    return { kind: 'failed', error: { code: 'redirect', message, detail: answerJson(answer) }, retryable: false }
  }
  const error = { code: 'http_status', message: `${said}.`, detail: answerJson(answer) }
  if (!isRetryable(status)) return { kind: 'failed', error, retryable: false }
  const asked = headerOf(answer, 'retry-after')
  const wait = asked === undefined ? undefined : retryAfterMs(asked, clock.now(), clock.retryAfterMaxMs)
  return { kind: 'failed', error, retryable: true, ...(wait === undefined ? {} : { retryAfterMs: wait }) }
}

function outcomeOfError(error: Error): Outcome {
  const code = codeOf(error)
  // Only undici's own check of what it was given. A spec that passed ours and not this one will never be sent.
  if (code === 'UND_ERR_INVALID_ARG') {
    return {
      kind: 'malformed',
      error: { code: 'invalid_request', message: `The request is not valid: ${error.message}.` },
    }
  }
  const message = `No answer came: ${code ?? error.name}.`
  const detail = { cause: code ?? error.name }
  return { kind: 'failed', error: { code: 'network', message, detail }, retryable: true }
}

function isSuccess({ status }: Answer): boolean {
  return status >= 200 && status < 300
}

function isRetryable(status: number): boolean {
  return status === 408 || status === 425 || status === 429 || status >= 500
}

function codeOf(error: Error & { readonly code?: unknown }): string | undefined {
  return typeof error.code === 'string' ? error.code : undefined
}
