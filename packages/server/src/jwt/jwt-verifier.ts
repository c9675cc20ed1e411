import { systemClock, type Clock } from '@carillon/core'
import { errors, jwtVerify, type JWTHeaderParameters, type JWTPayload } from 'jose'
import type { Logger } from 'pino'

import { systemWallClock, type WallClock } from '../clock.ts'
import type { Identity } from '../http/identity.ts'
import { CLAIM_MAPPING_DEFAULT, claimedIdentity, type ClaimMapping } from './claimed-identity.ts'
import { IssuerKeys } from './issuer-keys.ts'
import { JWT_ALGORITHMS_DEFAULT, type JwtAlgorithm } from './jwt-algorithms.ts'
import { JwtKeysUnavailableError } from './jwt-keys-unavailable-error.ts'

export interface JwtVerifierOptions {
  /** What `iss` must be. */
  readonly issuer: string
  /** What `aud` must be, or hold. */
  readonly audience: string
  readonly jwksUrl: string
  /** @default RS256, PS256, ES256, EdDSA */
  readonly algorithms?: readonly JwtAlgorithm[]
  /** @default tenant, project, sub and role, with the values admin and member */
  readonly claims?: ClaimMapping
  /** Told why a token was refused (debug), and that keys cannot be fetched (warn). Never told a token. */
  readonly logger?: Pick<Logger, 'debug' | 'warn'>
  /** For the age of keys. @default the system's */
  readonly clock?: Pick<Clock, 'monotonicMs' | 'after'>
  /** What `exp` and `nbf` are held against. @default the wall clock */
  readonly wallClock?: WallClock
}

/** Tells whose a JSON Web Token is. */
export interface JwtVerifier {
  /**
   * Undefined for a token that is not genuine, not for us, not valid now, or does not say who it is.
   * @throws JwtKeysUnavailableError if nobody can tell, because the issuer's keys cannot be had
   */
  verify(token: string): Promise<Identity | undefined>
}

const TOKEN_MAX_LENGTH = 16 * 1024
const CLOCK_TOLERANCE_SECONDS = 30
/**
 * Of a token to authenticate with. An ID token or a logout token of the same issuer may say another, and is none. An access
 * token may say either of the last two (RFC 9068).
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
        // Whatever else: a key of the set that cannot be used is chosen by the token, and must not be our failure.
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

/** jose understands one critical extension, which nobody needs here; to whoever knows none, all are a reason to refuse. */
function headerFault({ typ, crit }: JWTHeaderParameters): 'typ' | 'crit' | undefined {
  if (crit !== undefined) return 'crit'
  // As signed: the types of jose say a text, the token may say anything.
  const type: unknown = typ
  const isKnown = type === undefined || (typeof type === 'string' && TYPES.has(type.toLowerCase()))
  return isKnown ? undefined : 'typ'
}

/** Which rule a token breaks; nothing of what it says. */
function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired) {
    return `${error.code} ${error.claim}`
  }
  if (error instanceof errors.JOSEError) return error.code
  return error instanceof Error ? error.name : 'unknown'
}
