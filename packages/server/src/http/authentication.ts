import { createHash, timingSafeEqual } from 'node:crypto'

import { JwtKeysUnavailableError } from '../jwt/jwt-keys-unavailable-error.ts'
import type { JwtVerifier } from '../jwt/jwt-verifier.ts'
import type { AppDeps } from './app-deps.ts'
import type { Credentials } from './credentials.ts'
import { identityOf, INSTALLATION, type Identity } from './identity.ts'
import { unavailableProblem } from './problems/carillon-problems.ts'

/**
 * Tells whose credentials these are; undefined if nobody's. Nothing is remembered between requests, so a key that is
 * revoked stops at once.
 * @throws ProblemError `unavailable` if nobody can tell whether a token is genuine
 */
export type Authenticate = (credentials: Credentials) => Promise<Identity | undefined>

/** A JSON Web Token, signed. No key that we make has a dot; the installation's own may, and is looked at first. */
const TOKEN = /^[^.]*\.[^.]*\.[^.]*$/

export function createAuthenticate({
  keys,
  adminKey,
  signIn,
  jwt,
}: Pick<AppDeps, 'keys' | 'adminKey' | 'signIn' | 'jwt'>): Authenticate {
  const adminDigest = digestOf(adminKey)
  return async (credentials) => {
    if (credentials.kind === 'session') return signIn?.accepts(credentials.cookie) === true ? INSTALLATION : undefined
    const { secret } = credentials
    // Over digests: how long a comparison takes tells nothing of the key, not even its length.
    if (timingSafeEqual(digestOf(secret), adminDigest)) return INSTALLATION
    if (jwt !== undefined && TOKEN.test(secret)) return verified(jwt, secret)
    const apiKey = await keys.find(secret)
    return apiKey && identityOf(apiKey)
  }
}

async function verified(jwt: JwtVerifier, token: string): Promise<Identity | undefined> {
  try {
    return await jwt.verify(token)
  } catch (error) {
    throw error instanceof JwtKeysUnavailableError ? unavailableProblem(error) : error
  }
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
