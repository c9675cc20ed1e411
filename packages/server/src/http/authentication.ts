import { createHash, timingSafeEqual } from 'node:crypto'

import type { AppDeps } from './app-deps.ts'
import type { Credentials } from './credentials.ts'
import { identityOf, INSTALLATION, type Identity } from './identity.ts'

/**
 * Tells whose credentials these are; undefined if nobody's. Nothing is remembered between requests, so a key that is
 * revoked stops at once.
 */
export type Authenticate = (credentials: Credentials) => Promise<Identity | undefined>

export function createAuthenticate({
  keys,
  adminKey,
  signIn,
}: Pick<AppDeps, 'keys' | 'adminKey' | 'signIn'>): Authenticate {
  const adminDigest = digestOf(adminKey)
  return async (credentials) => {
    if (credentials.kind === 'session') return signIn?.accepts(credentials.cookie) === true ? INSTALLATION : undefined
    const { secret } = credentials
    // Over digests: how long a comparison takes tells nothing of the key, not even its length.
    if (timingSafeEqual(digestOf(secret), adminDigest)) return INSTALLATION
    const apiKey = await keys.find(secret)
    return apiKey && identityOf(apiKey)
  }
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
