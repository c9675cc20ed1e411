import { HTTP_RETRY } from '@carillon/api'
import type { Outcome, Problem, Target, TargetContext } from '@carillon/core'
import { Agent } from 'undici'

import { credentialsOf, type Credentials } from './auth/credentials.ts'
import { withheldFrom } from './auth/withheld.ts'
import { exchange, type ExchangeEnd } from './exchange.ts'
import { AddressNotAllowedError, guardedConnector } from './guard/connector.ts'
import {
  addressRefusal,
  Destinations,
  hostFault,
  hostRefusal,
  grantScopeOf,
  urlProblems,
  type Destination,
} from './guard/destinations.ts'
import { resolveOptions, type HttpTargetOptions, type ResolvedHttpTargetOptions } from './options.ts'
import { outcomeOf } from './outcome.ts'
import { requestHeaders } from './request.ts'
import { httpSpecSchema, type HttpSpec } from './spec.ts'

const KEPT_BODY_BYTES = 4096
const NO_CREDENTIALS: Credentials = { ok: true, headers: [] }

/** Creates the target that calls a URL. The payload is the JSON body, unchanged; everything else about the slot is in headers. */
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
    requiredScope: ({ url }) => destinations.find(url)?.scope ?? grantScopeOf(new URL(url)),
    secretRefs: (spec) => secretNames(spec).map((name) => ({ path: 'auth.secretRef', name })),
    timeoutMs: (spec) => spec.timeoutSeconds * 1000,
    check: (spec, limits) => [
      ...urlProblems(destinations.find(spec.url), allowedHosts, limits),
      ...(secrets === undefined && secretNames(spec).length > 0 ? [NO_STORE] : []),
    ],
    dispatch: (context, signal) => {
      const destination = destinations.find(context.spec.url)
      // Checked again: since the schedule was created, the host may have been removed from the installation's or the tenant's list.
      const fault = hostFault(destination, context.limits)
      if (destination === undefined || fault !== undefined) {
        return Promise.resolve(hostRefusal(fault ?? 'installation', destination))
      }
      return send(agent, destination, context, resolved, signal)
    },
    // Not `close`, which would wait for attempts that the worker has already given up.
    close: () => agent.destroy(),
  }
}

/**
 * The agent neither follows redirects nor retries. Only its signal ends an attempt: undici's own timeouts could end an attempt
 * whose timeout has not passed. Each connection carries one HTTP/1.1 request at a time, so a broken one fails one attempt only.
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
    'expected no auth, because this installation has no secret store, got auth with a secret: ' +
    'leave auth out, or ask the operator to set up a secret store',
}

/** The result of the work; undefined as soon as the signal fires. */
async function unlessSignalled<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result | undefined> {
  const { promise: aborted, resolve } = Promise.withResolvers<undefined>()
  const abort = (): void => resolve(undefined)
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  try {
    // Races even if the signal has already fired: the race handles a later rejection of `work`, which would otherwise be unhandled.
    return await Promise.race([aborted, work])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
