import { SECRET_VALUE_MAX_LENGTH, type HttpAuth } from '@carillon/api'
import type { Outcome, SecretStore, TargetContext } from '@carillon/core'

import { readSigningKeys, SIGNING_KEY_BYTES, SIGNING_KEYS_MAX, webhookHeaders } from './webhook-signature.ts'

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

/** Lets `withheldFrom` remove the token from an answer: removing a token of one letter would remove that letter from every word. */
const TOKEN_MIN_LENGTH = 8
/** Visible ASCII without blanks, no longer than servers accept in one header. */
const TOKEN = new RegExp(`^[\\x21-\\x7e]{${TOKEN_MIN_LENGTH},${SECRET_VALUE_MAX_LENGTH}}$`)

/** The headers that prove the origin of a request. Reads the secret on every attempt, so a new value is used at once. */
export async function credentialsOf(
  { tenantId, projectId, runId }: Pick<TargetContext<unknown>, 'tenantId' | 'projectId' | 'runId'>,
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

const { min: KEY_MIN, max: KEY_MAX } = SIGNING_KEY_BYTES
const NEEDED = {
  bearer: `a bearer token of ${TOKEN_MIN_LENGTH} to ${SECRET_VALUE_MAX_LENGTH} visible ASCII characters without blanks`,
  hmac: `a signing secret (whsec_ and ${KEY_MIN} to ${KEY_MAX} bytes in base64), or up to ${SIGNING_KEYS_MAX} of these separated by blanks`,
}

function refused(auth: SecretAuth, code: SecretFault): Credentials {
  const reasons: Record<SecretFault, string> = {
    secret_unavailable: `the secret "${auth.secretRef}" could not be read`,
    secret_missing: `expected a secret "${auth.secretRef}" in this project, got none`,
    secret_unusable: `expected the secret "${auth.secretRef}" to be ${NEEDED[auth.kind]}, got another text`,
  }
  const error = { code, message: `${reasons[code]}; nothing was sent` }
  // A store that failed may work again later. The other faults stay until someone changes the secret.
  return { ok: false, outcome: { kind: 'failed', error, retryable: code === 'secret_unavailable' } }
}
