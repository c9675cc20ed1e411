import { createHash, timingSafeEqual } from 'node:crypto'

import type { Keys } from '@carillon/core'
import type { FastifyRequest } from 'fastify'

import { identityOfKey, INSTALLATION, type Identity } from './identity.ts'
import type { JwtVerifier } from './jwt.ts'

/** The name of the cookie that holds the session of a signed-in browser. */
export const SESSION_COOKIE = 'carillon_session'

/** What proves who sent a request: a key (an API key, the admin key or a JSON Web Token), or a session cookie. */
type Credentials =
  | { readonly kind: 'key'; readonly secret: string }
  | { readonly kind: 'session'; readonly cookie: string }

/**
 * Returns the identity behind the credentials, or undefined if they are not valid. No identity is cached between requests, so a
 * revoked API key stops working at once.
 * @throws JwtKeysUnavailableError if a token cannot be verified because its issuer's public keys cannot be fetched
 */
export type Authenticate = (credentials: Credentials) => Promise<Identity | undefined>

interface AuthenticateDeps {
  readonly keys: Keys
  readonly adminKey: string
  readonly signIn?: { accepts(cookie: string): boolean } | undefined
  readonly jwt?: JwtVerifier | undefined
}

/**
 * The shape of a signed JSON Web Token. API keys contain no dot. The admin key may contain dots, so a credential is compared
 * with the admin key before it is matched against this pattern.
 */
const TOKEN = /^[^.]*\.[^.]*\.[^.]*$/

/**
 * Reads the credentials of a request. An Authorization header wins over a session cookie. Returns undefined if the request has
 * neither, or a header that cannot be read.
 * @param isBasicAllowed true: a key is also accepted as the password of basic authentication, which calendar programs need
 */
export function credentialsOf(
  { headers, cookies }: Pick<FastifyRequest, 'headers' | 'cookies'>,
  { isBasicAllowed }: { readonly isBasicAllowed: boolean },
): Credentials | undefined {
  const { authorization } = headers
  if (authorization === undefined) {
    const cookie = cookies[SESSION_COOKIE]
    return cookie === undefined ? undefined : { kind: 'session', cookie }
  }
  const [, scheme = '', value = ''] = /^([a-z]+) +(\S+)$/i.exec(authorization) ?? []
  switch (scheme.toLowerCase()) {
    case 'bearer':
      return { kind: 'key', secret: value }
    case 'basic':
      return isBasicAllowed ? { kind: 'key', secret: passwordOf(value) } : undefined
    default:
      return undefined
  }
}

export function createAuthenticate({ keys, adminKey, signIn, jwt }: AuthenticateDeps): Authenticate {
  const adminDigest = digestOf(adminKey)
  return async (credentials) => {
    if (credentials.kind === 'session') return signIn?.accepts(credentials.cookie) === true ? INSTALLATION : undefined
    const { secret } = credentials
    // Comparing digests takes the same time for every key, so the time reveals nothing about the admin key, not even its length.
    if (timingSafeEqual(digestOf(secret), adminDigest)) return INSTALLATION
    if (jwt !== undefined && TOKEN.test(secret)) return jwt.verify(secret)
    const apiKey = await keys.find(secret)
    return apiKey && identityOfKey(apiKey)
  }
}

/** The password of `name:password`. The name is ignored. */
function passwordOf(encoded: string): string {
  const text = Buffer.from(encoded, 'base64').toString('utf8')
  return text.slice(text.indexOf(':') + 1)
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
