import { systemClock, type Clock } from '@carillon/core'
import { errors, jwtVerify, type JWTHeaderParameters, type JWTPayload } from 'jose'
import type { Logger } from 'pino'

import { systemWallClock, type WallClock } from '../clock.ts'
import { CLAIM_MAPPING_DEFAULT, claimedIdentity, type ClaimMapping } from './claims.ts'
import type { Identity } from './identity.ts'
import { IssuerKeys, JwtKeysUnavailableError } from './issuer-keys.ts'

/**
 * The signature algorithms that can be configured. Asymmetric only: with a shared secret, every party that can verify a token
 * could also forge one, and `none` is no signature.
 */
export const JWT_ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
] as const

export type JwtAlgorithm = (typeof JWT_ALGORITHMS)[number]

export const JWT_ALGORITHMS_DEFAULT: readonly JwtAlgorithm[] = ['RS256', 'PS256', 'ES256', 'EdDSA']

export interface JwtVerifierOptions {
  /** The required value of `iss`. */
  readonly issuer: string
  /** The value that `aud` must be or contain. */
  readonly audience: string
  readonly jwksUrl: string
  /** @default RS256, PS256, ES256, EdDSA */
  readonly algorithms?: readonly JwtAlgorithm[]
  /** @default tenant, project, sub and role, with the values admin and member */
  readonly claims?: ClaimMapping
  /** Logs why a token was refused (debug) and failed key fetches (warn). No token is ever logged. */
  readonly logger?: Pick<Logger, 'debug' | 'warn'>
  /** Measures the age of cached keys. @default the system's clock */
  readonly clock?: Pick<Clock, 'monotonicMs' | 'after'>
  /** Compared with `exp` and `nbf`. @default the system's wall clock */
  readonly wallClock?: WallClock
}

/** Verifies JSON Web Tokens. */
export interface JwtVerifier {
  /**
   * Returns undefined for a token that is forged, meant for another audience, not valid now, or without a complete identity.
   * @throws JwtKeysUnavailableError if the issuer's keys cannot be fetched
   */
  verify(token: string): Promise<Identity | undefined>
}

const TOKEN_MAX_LENGTH = 16 * 1024
const CLOCK_TOLERANCE_SECONDS = 30
/**
 * The `typ` headers with which a token is accepted; it is also accepted without one. A token that declares another type, such
 * as a logout token of the same issuer, is refused. An access token may use either of the last two (RFC 9068).
 */
const TYPES = new Set(['jwt', 'at+jwt', 'application/at+jwt'])

export function createJwtVerifier(options: JwtVerifierOptions): JwtVerifier {
  const { issuer, audience, jwksUrl, claims = CLAIM_MAPPING_DEFAULT, logger } = options
  const { algorithms = JWT_ALGORITHMS_DEFAULT, clock = systemClock, wallClock = systemWallClock } = options
  const keys = new IssuerKeys({ url: jwksUrl, clock, logger })

  function refuse(reason: string): undefined {
    logger?.debug({ event: 'jwt.refused', reason }, 'a token was refused')
  }

  return {
    verify: async (token) => {
      if (token.length > TOKEN_MAX_LENGTH) return refuse('too long')
      try {
        const { payload, protectedHeader } = await jwtVerify(token, keys.find, {
          issuer,
          audience,
          algorithms: [...algorithms],
          requiredClaims: ['exp'],
          clockTolerance: CLOCK_TOLERANCE_SECONDS,
          currentDate: new Date(wallClock.now()),
        })
        return identify(protectedHeader, payload)
      } catch (error) {
        if (error instanceof JwtKeysUnavailableError) throw error
        // Any other error refuses the token. The token chooses the key, so an unusable key must not become a server error.
        return refuse(reasonOf(error))
      }
    },
  }

  function identify(header: JWTHeaderParameters, payload: JWTPayload): Identity | undefined {
    const fault = headerFault(header)
    if (fault !== undefined) return refuse(`header ${fault}`)
    const claimed = claimedIdentity(payload, claims)
    return 'identity' in claimed ? claimed.identity : refuse(`claim ${claimed.faultyClaim}`)
  }
}

/**
 * Returns the header field that makes a token unacceptable. Every critical extension is refused: jose would accept the one that
 * it implements, which no token here needs.
 */
function headerFault({ typ, crit }: JWTHeaderParameters): 'typ' | 'crit' | undefined {
  if (crit !== undefined) return 'crit'
  // jose types `typ` as a string, but a token may hold any JSON value here.
  const type: unknown = typ
  const isKnown = type === undefined || (typeof type === 'string' && TYPES.has(type.toLowerCase()))
  return isKnown ? undefined : 'typ'
}

/** The rule that a token breaks, without any content of the token. */
function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired) {
    return `${error.code} ${error.claim}`
  }
  if (error instanceof errors.JOSEError) return error.code
  return error instanceof Error ? error.name : 'unknown'
}
