import { createHmac } from 'node:crypto'

/** What a signature covers by Standard Webhooks 1.0 with symmetric keys: https://www.standardwebhooks.com */
export interface WebhookMessage {
  /** The same on every attempt, so the receiver can drop a repeated message. */
  readonly id: string
  /** The time of this attempt, in Unix seconds: the receiver refuses old messages. */
  readonly timestamp: number
  /** Exactly the bytes that are sent, as text; empty if there is no body. */
  readonly body: string
}

const KEY = /^whsec_(?<base64>[A-Za-z\d+/]+={0,2})$/
export const SIGNING_KEY_BYTES = { min: 24, max: 64 } as const
export const SIGNING_KEYS_MAX = 5

/**
 * Reads the keys in a secret: `whsec_<base64>`, or several with blanks between during a rotation. Undefined if the secret has
 * another form.
 */
export function readSigningKeys(secret: string): readonly Buffer[] | undefined {
  const keys = secret.trim().split(/\s+/).map(readKey)
  const readable = keys.filter((key) => key !== undefined)
  return readable.length === keys.length && keys.length <= SIGNING_KEYS_MAX ? readable : undefined
}

/** One signature per key, so a receiver that has any of the keys can verify the message. */
export function webhookHeaders({ id, timestamp, body }: WebhookMessage, keys: readonly Buffer[]): [string, string][] {
  const signatures = keys.map((key) => {
    const digest = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
    return `v1,${digest}`
  })
  return [
    ['webhook-id', id],
    ['webhook-timestamp', String(timestamp)],
    ['webhook-signature', signatures.join(' ')],
  ]
}

function readKey(text: string): Buffer | undefined {
  const base64 = KEY.exec(text)?.groups?.['base64']
  if (base64 === undefined) return undefined
  const key = Buffer.from(base64, 'base64')
  // Node accepts truncated base64; the receiver may refuse it or read other bytes.
  const isWhole = key.toString('base64') === base64
  return isWhole && key.length >= SIGNING_KEY_BYTES.min && key.length <= SIGNING_KEY_BYTES.max ? key : undefined
}
