import { HTTP_RETRY } from '@carillon/api'
import type { SecretStore } from '@carillon/core'

import { systemNow } from './clock.ts'
import { resolveBySystem, type Resolve } from './guard/connector.ts'
import { parseAllowedHosts, type AllowedHosts } from './guard/hosts.ts'

export interface HttpTargetOptions {
  /**
   * The hosts that a schedule may call: `127.0.0.1`, `localhost`, `*.internal.example.com`, `digest.internal:8443`,
   * `[::1]`, `*`. An empty list allows none.
   *
   * Every address behind a host must be public, or be listed here by itself or in a network: `10.0.0.0/8`, `fd00::/8`. So
   * `*` is every public host, and no name can lead to loopback, a private network or cloud metadata that is not listed.
   */
  readonly allowedHosts: readonly string[]
  /** The most bytes of an answer's body that are read. If there are more, Carillon closes the connection. @default 65536 */
  readonly maxBodyBytes?: number
  /** The most connections to one origin. Further attempts wait for a free one, and the wait is part of their timeout. @default 64 */
  readonly connections?: number
  /**
   * For how many seconds the called services remember an idempotency key. The operator sets this, because the author of a
   * schedule cannot promise it for the called service. All retries of one run must fit into this time. @default 86400, as in
   * Restate
   */
  readonly idempotencyRetentionSeconds?: number
  /** The store that `auth` reads secrets from. Without a store, a spec whose `auth` names a secret is rejected. */
  readonly secrets?: SecretStore
  /** Finds all addresses of a name. @default the resolver of this machine */
  readonly resolve?: Resolve
  /** The time in epoch milliseconds, to date signatures and to read a Retry-After that is a date. @default the wall clock */
  readonly now?: () => number
}

export interface ResolvedHttpTargetOptions {
  readonly allowedHosts: AllowedHosts
  readonly maxBodyBytes: number
  readonly connections: number
  readonly idempotencyRetentionSeconds: number
  readonly secrets: SecretStore | undefined
  readonly resolve: Resolve
  readonly now: () => number
}

/**
 * An upper bound of all backoffs of one run together: 10 × 2160 s = 6 h. `resolveOptions` rejects an
 * `idempotencyRetentionSeconds` below this.
 */
const RETRIES_MAX_SECONDS = HTTP_RETRY.maxAttempts * HTTP_RETRY.capSeconds

/** @throws RangeError naming the option at fault */
export function resolveOptions(options: HttpTargetOptions): ResolvedHttpTargetOptions {
  return {
    allowedHosts: parseAllowedHosts(options.allowedHosts),
    maxBodyBytes: atLeast('maxBodyBytes', 1, options.maxBodyBytes ?? 65_536),
    connections: atLeast('connections', 1, options.connections ?? 64),
    idempotencyRetentionSeconds: atLeast(
      'idempotencyRetentionSeconds',
      RETRIES_MAX_SECONDS,
      options.idempotencyRetentionSeconds ?? 86_400,
    ),
    secrets: options.secrets,
    resolve: options.resolve ?? resolveBySystem,
    now: options.now ?? systemNow,
  }
}

function atLeast(name: string, min: number, value: number): number {
  if (Number.isSafeInteger(value) && value >= min) return value
  throw new RangeError(`expected \`${name}\` to be a whole number of at least ${min}, got ${value}`)
}
