import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from 'jose'

import { createJwtVerifier, type JwtVerifier, type JwtVerifierOptions } from '../../src/auth/jwt.ts'
import { createLogger } from '../../src/start/log.ts'
import { ManualClock } from '../http/manual-clock.ts'

const ISSUER = 'https://login.example.com/'
const AUDIENCE = 'carillon'
const STARTED_AT = Date.parse('2030-01-01T00:00:00Z')

export interface SigningKey {
  readonly alg: string
  readonly privateKey: CryptoKey
  readonly publicJwk: JWK
}

export async function createKey(kid: string, alg = 'RS256'): Promise<SigningKey> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true })
  return { alg, privateKey, publicJwk: { ...(await exportJWK(publicKey)), kid, use: 'sig' } }
}

/** Serves a JWK set on this machine. */
export interface JwksServer extends AsyncDisposable {
  readonly url: string
  /** How many requests the server has received. */
  readonly asked: () => number
  /** Resolves when the next request arrives. */
  readonly nextAsked: () => Promise<unknown>
  published: readonly JWK[]
  /** If set, answers every request. Null: the server answers with `published`. */
  misbehave: ((response: ServerResponse) => void) | null
}

export async function startJwksServer(...keys: readonly SigningKey[]): Promise<JwksServer> {
  let asked = 0
  const server = createServer((_request, response) => {
    asked += 1
    if (jwks.misbehave !== null) return jwks.misbehave(response)
    response.setHeader('content-type', 'application/jwk-set+json').end(JSON.stringify({ keys: jwks.published }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const jwks: JwksServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`,
    asked: () => asked,
    nextAsked: () => once(server, 'request'),
    published: keys.map(({ publicJwk }) => publicJwk),
    misbehave: null,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
  return jwks
}

/** A token verifier whose clock moves only when a test moves it. */
export interface VerifierWorld {
  readonly clock: ManualClock
  readonly verifier: JwtVerifier
  /** The log lines so far. */
  readonly log: readonly string[]
  /** The current time in epoch seconds. */
  readonly seconds: () => number
  /** A valid token with these changes. A claim that is undefined is left out. */
  readonly sign: (key: SigningKey, claims?: Claims, header?: Readonly<Record<string, unknown>>) => Promise<string>
}

type Claims = Readonly<Record<string, unknown>>

export function createVerifierWorld(jwksUrl: string, options: Partial<JwtVerifierOptions> = {}): VerifierWorld {
  const clock = new ManualClock()
  const wallClock = { now: () => STARTED_AT + clock.monotonicMs() }
  const log: string[] = []
  const logger = createLogger({ logLevel: 'debug' }, { write: (line) => void log.push(line) })
  const verifier = createJwtVerifier({
    issuer: ISSUER,
    audience: AUDIENCE,
    jwksUrl,
    logger,
    clock,
    wallClock,
    ...options,
  })
  const seconds = (): number => Math.floor(wallClock.now() / 1000)
  return {
    clock,
    verifier,
    log,
    seconds,
    sign: ({ alg, privateKey, publicJwk }, claims = {}, header = {}) =>
      new SignJWT({ ...soundClaims(seconds()), ...claims })
        .setProtectedHeader({ alg, kid: publicJwk.kid ?? '', typ: 'JWT', ...header })
        .sign(privateKey, { crit: { b64: true, vendor: true } }),
  }
}

export function soundClaims(seconds: number): Claims {
  return {
    iss: ISSUER,
    aud: AUDIENCE,
    sub: 'alice',
    tenant: 'acme',
    project: 'web',
    role: 'admin',
    iat: seconds,
    exp: seconds + 300,
  }
}

/** A token with exactly this header and these claims, valid or not. */
export function rawToken(header: unknown, claims: unknown, sign: (input: string) => Buffer): string {
  const input = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${input}.${sign(input).toString('base64url')}`
}
