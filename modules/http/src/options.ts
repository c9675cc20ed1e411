import { HTTP_RETRY } from '@carillon/api'
import type { SecretStore } from '@carillon/core'
import type { GuardedClientOptions } from '@carillon/outbound'

import { systemNow } from './clock.ts'

/** The options of a target that is given its client. */
export interface SharedHttpTargetOptions {
  /** The most bytes of an answer's body that are read. If there are more, Carillon closes the connection. @default 65536 */
  readonly maxBodyBytes?: number
  /**
   * For how many seconds the called services remember an idempotency key. The operator sets this, because the author of a
   * schedule cannot promise it for the called service. All retries of one run must fit into this time. @default 86400, as in
   * Restate
   */
  readonly idempotencyRetentionSeconds?: number
  /** The store that `auth` reads secrets from. Without a store, a spec whose `auth` names a secret is rejected. */
  readonly secrets?: SecretStore
  /** The time in epoch milliseconds, to date signatures and to read a Retry-After that is a date. @default the wall clock */
  readonly now?: () => number
}

/** The options of a target with a client of its own. */
export interface HttpTargetOptions extends SharedHttpTargetOptions, GuardedClientOptions {}

export interface ResolvedHttpTargetOptions {
  readonly maxBodyBytes: number
  readonly idempotencyRetentionSeconds: number
  readonly secrets: SecretStore | undefined
  readonly now: () => number
}

/**
 * An upper bound of all backoffs of one run together: 10 × 2160 s = 6 h. `resolveOptions` rejects an
 * `idempotencyRetentionSeconds` below this.
 */
const RETRIES_MAX_SECONDS = HTTP_RETRY.maxAttempts * HTTP_RETRY.capSeconds

/** @throws RangeError naming the option at fault */
export function resolveOptions(options: SharedHttpTargetOptions): ResolvedHttpTargetOptions {
  return {
    maxBodyBytes: atLeast('maxBodyBytes', 1, options.maxBodyBytes ?? 65_536),
    idempotencyRetentionSeconds: atLeast(
      'idempotencyRetentionSeconds',
      RETRIES_MAX_SECONDS,
      options.idempotencyRetentionSeconds ?? 86_400,
    ),
    secrets: options.secrets,
    now: options.now ?? systemNow,
  }
}

function atLeast(name: string, min: number, value: number): number {
  if (Number.isSafeInteger(value) && value >= min) return value
  throw new RangeError(`expected \`${name}\` to be a whole number of at least ${min}, got ${value}`)
}
