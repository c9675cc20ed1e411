import { createHash } from 'node:crypto'

import type { Scope } from '../kernel/scope.ts'

/** What the token of a callback says. The database knows whether its mac is the one of the run. */
export interface CallbackToken extends Scope {
  readonly mac: Buffer
}

const MAC_BYTES = 32

/**
 * The token with which the called side completes a run. It is the same on every attempt: a service that knows the idempotency key ignores a
 * repeated request, and calls back with the token of the first one. It names the project, so that a server finds the run behind the
 * project's row-level security, and nothing is stored for it.
 */
export function callbackToken(key: Buffer, { tenantId, projectId, runId }: Scope & { readonly runId: string }): string {
  const message = Buffer.concat([
    Buffer.from(runId.replaceAll('-', ''), 'hex'),
    Buffer.from(`${tenantId}/${projectId}`),
  ])
  // Nested as in the database function `is_callback`, so an attacker cannot extend a text and its mac.
  const mac = sha256(key, sha256(key, message))
  return `${Buffer.from(JSON.stringify([tenantId, projectId])).toString('base64url')}.${mac.toString('base64url')}`
}

/** Reads a token; undefined if the text is none. */
export function readCallbackToken(text: string): CallbackToken | undefined {
  const [scope = '', mac = '', ...rest] = text.split('.')
  const bytes = Buffer.from(mac, 'base64url')
  if (rest.length > 0 || bytes.length !== MAC_BYTES) return undefined
  try {
    const [tenantId, projectId]: unknown[] = JSON.parse(Buffer.from(scope, 'base64url').toString()) as unknown[]
    if (typeof tenantId !== 'string' || typeof projectId !== 'string') return undefined
    return { tenantId, projectId, mac: bytes }
  } catch {
    return undefined
  }
}

function sha256(...parts: readonly Buffer[]): Buffer {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}
