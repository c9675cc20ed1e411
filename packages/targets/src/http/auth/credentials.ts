import { SECRET_VALUE_MAX_LENGTH, type HttpAuth } from '@carillon/api'
import type { Outcome, SecretStore, TargetContext } from '@carillon/core'

import type { HttpSpec } from '../spec.ts'
import { readSigningKeys, webhookHeaders } from './webhook-signature.ts'

type SecretAuth = Exclude<HttpAuth, { kind: 'none' }>

export type Credentials =
  | {
      readonly ok: true
      readonly headers: readonly (readonly [string, string])[]
      /** The secret, if the request carries it in plain text: then the answer may repeat it. */
      readonly sentSecret?: string
    }
  /** The request must not be sent. `outcome` tells why. */
  | { readonly ok: false; readonly outcome: Outcome }

export interface CredentialSource {
  readonly secrets: SecretStore | undefined
  /** Epoch milliseconds. */
  readonly now: () => number
}

/**
 * Visible ASCII without blanks, no longer than servers accept in one header. The minimum lets `withheldFrom` remove the token
 * from an answer: removing a token of one letter would remove that letter from every word.
 */
const TOKEN = new RegExp(`^[\\x21-\\x7e]{8,${SECRET_VALUE_MAX_LENGTH}}$`)

/** The headers that prove the origin of a request. Reads the secret on every attempt, so a new value is used at once. */
export async function credentialsOf(
  { tenantId, projectId, runId }: TargetContext<HttpSpec>,
  body: string,
  auth: SecretAuth,
  { secrets, now }: CredentialSource,
): Promise<Credentials> {
  let secret: string | undefined
  try {
    if (secrets === undefined) return refused(auth, 'secret_unavailable')
    secret = await secrets.resolve({ tenantId, projectId, name: auth.secretRef })
  } catch {
    // The error is not shown, because the message of a store may contain the secret.
    return refused(auth, 'secret_unavailable')
  }
  if (secret === undefined) return refused(auth, 'secret_missing')
  if (auth.kind === 'bearer') {
    if (!TOKEN.test(secret)) return refused(auth, 'secret_unusable')
    return { ok: true, headers: [['Authorization', `Bearer ${secret}`]], sentSecret: secret }
  }
  const keys = readSigningKeys(secret)
  if (keys === undefined) return refused(auth, 'secret_unusable')
  return { ok: true, headers: webhookHeaders({ id: runId, timestamp: Math.floor(now() / 1000), body }, keys) }
}

type SecretFault = 'secret_unavailable' | 'secret_missing' | 'secret_unusable'

const NEEDED = {
  bearer: 'a bearer token is 8 to 8,192 visible ASCII characters without blanks',
  hmac: 'a signing secret is whsec_ and 24 to 64 bytes in base64, or up to 5 of these with blanks between',
}

function refused(auth: SecretAuth, code: SecretFault): Credentials {
  const reasons: Record<SecretFault, string> = {
    secret_unavailable: `The secret "${auth.secretRef}" could not be read`,
    secret_missing: `There is no secret "${auth.secretRef}" in this project`,
    secret_unusable: `The secret "${auth.secretRef}" cannot be used: ${NEEDED[auth.kind]}`,
  }
  const error = { code, message: `${reasons[code]}; nothing was sent.` }
  // A store that failed may work again later. The other faults stay until someone changes the secret.
  return { ok: false, outcome: { kind: 'failed', error, retryable: code === 'secret_unavailable' } }
}
