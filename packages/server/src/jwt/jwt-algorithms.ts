/**
 * How a token may be signed. Closed, and asymmetric only: with a shared secret whoever can check a token can make one, and
 * `none` is no signature.
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
