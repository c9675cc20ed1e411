import type { Outcome, Problem, Target } from '@carillon/core'
import { Agent } from 'undici'

import { exchange } from './exchange.ts'
import { httpSpecSchema, type HttpSpec } from './http-spec.ts'
import { HTTP_RETRY, resolveOptions, type HttpTargetOptions } from './http-target-options.ts'
import { outcomeOf } from './outcome.ts'
import { requestHeaders } from './request-headers.ts'

const CONNECT_TIMEOUT_MS = 10_000
const KEPT_BODY_BYTES = 4096

/** Calls a URL: the payload is its JSON body, unchanged, and everything else about the slot is in headers. */
export function createHttpTarget(options: HttpTargetOptions): Target<HttpSpec> {
  const { allowedHosts, maxBodyBytes, connections, idempotencyRetentionSeconds, now } = resolveOptions(options)
  const limits = { readBytes: maxBodyBytes, keptBytes: Math.min(maxBodyBytes, KEPT_BODY_BYTES) }
  const clock = { now, retryAfterMaxMs: idempotencyRetentionSeconds * 1000 }
  // Neither follows redirects nor tries again by itself. One clock cuts an attempt, the signal's: undici's own timeouts
  // would cut a wait that the schedule allows. HTTP/1.1, one request at a time on a connection, so what breaks breaks
  // one attempt only.
  const agent = new Agent({
    connections,
    pipelining: 1,
    allowH2: false,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    headersTimeout: 0,
    bodyTimeout: 0,
  })

  function isAllowed(url: URL): boolean {
    return allowedHosts.some((pattern) => pattern.matches(url))
  }

  return {
    kind: 'http',
    schema: httpSpecSchema,
    retry: HTTP_RETRY,
    idempotencyRetentionSeconds,
    timeoutMs: (spec) => spec.timeoutSeconds * 1000,
    check: (spec) => {
      const url = URL.parse(spec.url)
      return url !== null && isAllowed(url) ? [] : [hostProblem(url)]
    },
    dispatch: async (context, signal) => {
      const { spec } = context
      const url = URL.parse(spec.url)
      // Asked again, because the list may have become shorter since the schedule was made.
      if (url === null || !isAllowed(url)) return hostRefusal(url)
      const request = {
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: spec.method,
        headers: requestHeaders(context),
        body: spec.payload === undefined ? null : JSON.stringify(spec.payload),
      }
      return outcomeOf(await exchange(agent, request, limits, signal), clock)
    },
    // Not `close`: it would wait for an attempt that nobody waits for any more.
    close: () => agent.destroy(),
  }
}

function hostProblem(url: URL | null): Problem {
  const expected = 'a host that this installation may call (CARILLON_ALLOWED_TARGETS)'
  return { path: 'url', message: `Expected ${expected}, but found ${hostText(url)}.` }
}

function hostRefusal(url: URL | null): Outcome {
  const error = {
    code: 'host_not_allowed',
    message: `This installation may not call ${hostText(url)}; nothing was sent.`,
  }
  return { kind: 'failed', error, retryable: false }
}

function hostText(url: URL | null): string {
  return url === null ? 'a URL without one' : url.host
}
