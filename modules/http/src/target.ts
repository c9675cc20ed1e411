import { HTTP_RETRY, HTTP_TIMEOUT_SECONDS, type RetryPolicy } from '@carillon/api'
import type { ModuleDeps, ModuleParts, OutboundClient, Outcome, Problem, Target, TargetContext } from '@carillon/core'
import { GuardedClient, hostOf, URL_CACHE } from '@carillon/outbound'
import { LRUCache } from 'lru-cache'

import { credentialsOf, type Credentials } from './auth/credentials.ts'
import { withheldFrom } from './auth/withheld.ts'
import {
  resolveOptions,
  type HttpTargetOptions,
  type ResolvedHttpTargetOptions,
  type SharedHttpTargetOptions,
} from './options.ts'
import { outcomeOf, outcomeOfRefusal } from './outcome.ts'
import { requestHeaders } from './request.ts'
import { callbackTimeoutMs, httpSpecSchema, type HttpSpec } from './spec.ts'

const KEPT_BODY_BYTES = 4096
const NO_CREDENTIALS: Credentials = { ok: true, headers: [] }

const EXAMPLE: HttpSpec = {
  kind: 'http',
  url: 'https://digest.internal/run',
  method: 'POST',
  payload: { list: 'a' },
  timeoutSeconds: HTTP_TIMEOUT_SECONDS.default,
}

/** The parts of the module `http`. Its list of hosts is that of the installation's client, CARILLON_ALLOWED_TARGETS. */
export function create({ outbound, secrets }: ModuleDeps): ModuleParts {
  return { targets: [createHttpTargetOn(outbound, { secrets })] }
}

/** Creates the target that calls a URL, with a client of its own. The payload is the JSON body, unchanged; everything else about the slot is in headers. */
export function createHttpTarget(options: HttpTargetOptions): Target<HttpSpec> {
  const client = new GuardedClient(options)
  return { ...createHttpTargetOn(client, options), close: () => client.close() }
}

/** The same with the client of the installation. The process that created the client closes it. */
export function createHttpTargetOn(outbound: OutboundClient, options: SharedHttpTargetOptions): Target<HttpSpec> {
  const resolved = resolveOptions(options)
  const { idempotencyRetentionSeconds, secrets } = resolved
  const scopes = new LRUCache<string, string>(URL_CACHE)

  return {
    kind: 'http',
    title: 'HTTP request',
    example: EXAMPLE,
    scopePattern: 'http:dispatch:<host>',
    schema: httpSpecSchema,
    policy: { retry: HTTP_RETRY },
    idempotencyRetentionSeconds,
    requiredScope: ({ url }) => {
      const known = scopes.get(url)
      if (known !== undefined) return known
      const scope = grantScopeOf(new URL(url))
      scopes.set(url, scope)
      return scope
    },
    secretRefs: (spec) => secretNames(spec).map((name) => ({ path: 'auth.secretRef', name })),
    timeoutMs: (spec) => spec.timeoutSeconds * 1000,
    deadlineMs: callbackTimeoutMs,
    isRetriedAtDeadline: ({ onDeadline }) => onDeadline !== 'fail',
    check: ({ spec, policy }, { allowedHosts }) => {
      const refusal = outbound.refusalOf(spec.url, allowedHosts)
      return [
        ...(refusal === undefined ? [] : [{ path: 'url', message: refusal.message }]),
        ...(secrets === undefined && secretNames(spec).length > 0 ? [NO_STORE] : []),
        ...callbackProblems(spec, policy.retry, idempotencyRetentionSeconds),
      ]
    },
    dispatch: (context, signal) => send(outbound, context, resolved, signal),
  }
}

async function send(
  outbound: OutboundClient,
  context: TargetContext<HttpSpec>,
  { secrets, now, maxBodyBytes, idempotencyRetentionSeconds }: ResolvedHttpTargetOptions,
  signal: AbortSignal,
): Promise<Outcome> {
  const { spec, limits } = context
  const { url, method, auth } = spec
  const body = spec.payload === undefined ? null : JSON.stringify(spec.payload)
  let credentials = NO_CREDENTIALS
  if (auth !== undefined && auth.kind !== 'none') {
    // Before the secret is read: its store is not asked for a request that will not be sent.
    const refusal = outbound.refusalOf(url, limits.allowedHosts)
    if (refusal !== undefined) return outcomeOfRefusal(refusal)
    const found = await unlessSignalled(credentialsOf(context, body ?? '', auth, { secrets, now }), signal)
    if (found === undefined) return { kind: 'cancelled' }
    credentials = found
  }
  if (!credentials.ok) return credentials.outcome
  const callback = spec.completion === 'callback' ? context.callback() : undefined
  const request = {
    url,
    method,
    headers: requestHeaders(context, credentials.headers, callback),
    body,
    allowedHosts: limits.allowedHosts,
    readBytes: maxBodyBytes,
    keptBytes: Math.min(maxBodyBytes, KEPT_BODY_BYTES),
  }
  const end = await outbound.send(request, signal)
  const answered = outcomeOf(end, { now, retryAfterMaxMs: idempotencyRetentionSeconds * 1000 })
  // Any 2xx says that the service has taken the work. What the work came to is in its callback.
  const outcome: Outcome =
    callback !== undefined && answered.kind === 'succeeded'
      ? { kind: 'accepted', deadlineMs: callbackTimeoutMs(spec) }
      : answered
  const sent = [credentials.sentSecret, callback?.token].filter((secret) => secret !== undefined)
  return sent.reduce<Outcome>(withheldFrom, outcome)
}

/**
 * With callbacks, an attempt may be repeated after a deadline has passed. All attempts of a run must begin while the service remembers the
 * idempotency key, or it would take a late one for new work.
 */
function callbackProblems(
  spec: HttpSpec,
  { maxAttempts, capSeconds }: RetryPolicy,
  retentionSeconds: number,
): Problem[] {
  if (spec.completion !== 'callback' || spec.onDeadline === 'fail') return []
  const deadlineSeconds = callbackTimeoutMs(spec) / 1000
  const total = maxAttempts * (capSeconds + deadlineSeconds)
  if (total <= retentionSeconds) return []
  return [
    {
      path: 'callbackTimeout',
      message:
        `expected maxAttempts × (capSeconds + callbackTimeout) to be at most ${retentionSeconds} s, for which the service ` +
        `remembers an idempotency key, got ${maxAttempts} × (${capSeconds} s + ${deadlineSeconds} s) = ${total} s: ` +
        'lower callbackTimeout or policy.retry, or set onDeadline to "fail"',
    },
  ]
}

/** The scope for a URL. It includes a port that is not the scheme's default: a grant for one port does not cover another. */
function grantScopeOf(url: URL): string {
  return `http:dispatch:${hostOf(url)}${url.port === '' ? '' : `:${url.port}`}`
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
