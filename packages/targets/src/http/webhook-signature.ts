import { createHmac } from 'node:crypto'

/** Standard Webhooks 1.0, symmetric: https://www.standardwebhooks.com */
export interface WebhookMessage {
  /** The same on every attempt, so that the receiver knows a message that it has. */
  readonly id: string
  /** Of this attempt, unix seconds: the receiver refuses what is old. */
  readonly timestamp: number
  /** Exactly the bytes that are sent, as text; empty if there is no body. */
  readonly body: string
}

const KEY = /^whsec_(?<base64>[A-Za-z\d+/]+={0,2})$/
const KEY_MIN_BYTES = 24
const KEY_MAX_BYTES = 64
const KEYS_MAX = 5

/**
 * The keys that a secret holds: `whsec_<base64>`, several with blanks between while one takes the place of another.
 * Undefined if it holds anything else.
 */
export function readSigningKeys(secret: string): readonly Buffer[] | undefined {
  const keys = secret.trim().split(/\s+/).map(readKey)
  const readable = keys.filter((key) => key !== undefined)
  return readable.length === keys.length && keys.length <= KEYS_MAX ? readable : undefined
}

/** One signature per key, so that a receiver with any of them can tell. */
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
  // Node reads base64 that breaks off; the receiver may not, or not the same.
  const isWhole = key.toString('base64') === base64
  return isWhole && key.length >= KEY_MIN_BYTES && key.length <= KEY_MAX_BYTES ? key : undefined
}
