import type { Outcome, Problem, Target, TargetContext } from '@carillon/core'
import { Agent } from 'undici'

import { credentialsOf, type Credentials } from './credentials.ts'
import { Destinations, scopeOf, type Destination } from './destination.ts'
import { exchange, type ExchangeEnd } from './exchange.ts'
import { AddressNotAllowedError, guardedConnector } from './guarded-connector.ts'
import { addressRefusal, hostFault, hostRefusal, urlProblems } from './host-check.ts'
import { httpSpecSchema, type HttpSpec } from './http-spec.ts'
import {
  HTTP_RETRY,
  resolveOptions,
  type HttpTargetOptions,
  type ResolvedHttpTargetOptions,
} from './http-target-options.ts'
import { outcomeOf } from './outcome.ts'
import { requestHeaders } from './request-headers.ts'
import { unlessSignalled } from './unless-signalled.ts'
import { withheldFrom } from './withheld.ts'

const KEPT_BODY_BYTES = 4096
const NO_CREDENTIALS: Credentials = { ok: true, headers: [] }

/** Calls a URL: the payload is its JSON body, unchanged, and everything else about the slot is in headers. */
export function createHttpTarget(options: HttpTargetOptions): Target<HttpSpec> {
  const resolved = resolveOptions(options)
  const { allowedHosts, idempotencyRetentionSeconds, secrets } = resolved
  const agent = createAgent(resolved)
  const destinations = new Destinations(allowedHosts)

  return {
    kind: 'http',
    schema: httpSpecSchema,
    retry: HTTP_RETRY,
    idempotencyRetentionSeconds,
    requiredScope: ({ url }) => destinations.find(url)?.scope ?? scopeOf(new URL(url)),
    secretRefs: (spec) => secretNames(spec).map((name) => ({ path: 'auth.secretRef', name })),
    timeoutMs: (spec) => spec.timeoutSeconds * 1000,
    check: (spec, limits) => [
      ...urlProblems(destinations.find(spec.url), allowedHosts, limits),
      ...(secrets === undefined && secretNames(spec).length > 0 ? [NO_STORE] : []),
    ],
    dispatch: (context, signal) => {
      const destination = destinations.find(context.spec.url)
      // Asked again, because both lists may have become shorter since the schedule was made.
      const fault = hostFault(destination, context.limits)
      if (destination === undefined || fault !== undefined) {
        return Promise.resolve(hostRefusal(fault ?? 'installation', destination))
      }
      return send(agent, destination, context, resolved, signal)
    },
    // Not `close`: it would wait for an attempt that nobody waits for any more.
    close: () => agent.destroy(),
  }
}

/**
 * Neither follows redirects nor tries again by itself. One clock cuts an attempt, the signal's: undici's own timeouts would
 * cut a wait that the schedule allows. HTTP/1.1, one request at a time on a connection, so what breaks breaks one attempt
 * only.
 */
function createAgent({ allowedHosts, connections, resolve }: ResolvedHttpTargetOptions): Agent {
  const { allowsAddress } = allowedHosts
  return new Agent({
    connections,
    pipelining: 1,
    allowH2: false,
    connect: guardedConnector({ allowsAddress, resolve }),
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}

async function send(
  agent: Agent,
  destination: Destination,
  context: TargetContext<HttpSpec>,
  { secrets, now, maxBodyBytes, idempotencyRetentionSeconds }: ResolvedHttpTargetOptions,
  signal: AbortSignal,
): Promise<Outcome> {
  const { spec } = context
  const body = spec.payload === undefined ? null : JSON.stringify(spec.payload)
  const credentials =
    spec.auth === undefined || spec.auth.kind === 'none'
      ? NO_CREDENTIALS
      : await unlessSignalled(credentialsOf(context, body ?? '', spec.auth, { secrets, now }), signal)
  if (credentials === undefined) return { kind: 'cancelled' }
  if (!credentials.ok) return credentials.outcome
  const request = {
    origin: destination.origin,
    path: destination.path,
    method: spec.method,
    headers: requestHeaders(context, credentials.headers),
    body,
  }
  const limits = { readBytes: maxBodyBytes, keptBytes: Math.min(maxBodyBytes, KEPT_BODY_BYTES) }
  const end = await exchange(agent, request, limits, signal)
  if (isAddressRefused(end)) return addressRefusal(destination.url)
  const outcome = outcomeOf(end, { now, retryAfterMaxMs: idempotencyRetentionSeconds * 1000 })
  return credentials.sentSecret === undefined ? outcome : withheldFrom(outcome, credentials.sentSecret)
}

function isAddressRefused(end: ExchangeEnd): boolean {
  return end.kind === 'broken' && end.error instanceof AddressNotAllowedError
}

function secretNames({ auth }: HttpSpec): string[] {
  return auth === undefined || auth.kind === 'none' ? [] : [auth.secretRef]
}

const NO_STORE: Problem = {
  path: 'auth',
  message:
    'Expected no auth, because this installation keeps no secrets; leave it out, or ask its operator to set up a store of secrets.',
}
