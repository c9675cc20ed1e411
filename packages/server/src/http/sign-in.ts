import { createHash, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

import { Signer } from '@fastify/cookie'
import type { FastifyInstance } from 'fastify'

import { SESSION_COOKIE } from '../auth/authenticate.ts'
import { systemWallClock, type WallClock } from '../clock.ts'
import { html, sendPage } from './html.ts'
import { ignoreBodies } from './input.ts'
import { ProblemError } from './problems.ts'

const SESSION_MS = 12 * 60 * 60 * 1000
const TOKEN_MS = 15 * 60 * 1000
/** The most unused sign-in tokens that stay valid. A further one makes the oldest invalid. Each start issues one. */
const TOKENS_MAX = 16

interface SignInDeps {
  readonly adminKey: string
  /** @default the system's wall clock */
  readonly clock?: WallClock
}

interface Token {
  readonly digest: Buffer
  readonly expiresAt: number
}

/**
 * Signs a browser in by a link that works once. A signed-in browser acts with the admin key, so links are printed only where
 * the operator reads them.
 *
 * A session is a signed cookie that holds its expiry. Nothing is stored: a session survives a restart, and a new admin key
 * ends all sessions.
 */
export class SignIn {
  readonly #clock: WallClock
  readonly #signer: Signer
  #tokens: readonly Token[] = []

  constructor({ adminKey, clock = systemWallClock }: SignInDeps) {
    this.#clock = clock
    // The signing key is derived from the admin key in one direction, so a cookie reveals nothing about the admin key.
    this.#signer = new Signer(Buffer.from(hkdfSync('sha256', adminKey, '', 'carillon session cookie 2', 32)))
  }

  issueToken(): string {
    const token = randomBytes(32).toString('base64url')
    const issued = { digest: digestOf(token), expiresAt: this.#clock.now() + TOKEN_MS }
    this.#tokens = [...this.#tokens, issued].slice(-TOKENS_MAX)
    return token
  }

  /** Uses up a token and returns the value of a session cookie; undefined if the token is unknown, used or expired. */
  redeem(token: string): string | undefined {
    const now = this.#clock.now()
    const digest = digestOf(token)
    const found = this.#tokens.find((issued) => timingSafeEqual(issued.digest, digest))
    this.#tokens = this.#tokens.filter((issued) => issued !== found && issued.expiresAt > now)
    if (found === undefined || found.expiresAt <= now) return undefined
    return this.#signer.sign(String(now + SESSION_MS))
  }

  accepts(cookie: string): boolean {
    const { valid, value } = this.#signer.unsign(cookie)
    return valid && Number(value) > this.#clock.now()
  }
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/**
 * True if a page of this server sent the request. A browser may attach the session cookie to the request of any page. Only Origin
 * and Sec-Fetch-Site, which no page can forge, tell which page sent it. False if both are missing.
 */
export function isSameOrigin(headers: IncomingHttpHeaders): boolean {
  const { origin, host } = headers
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin') return false
  if (origin === undefined) return site !== undefined
  return host !== undefined && URL.parse(origin)?.host === host.toLowerCase()
}

// `strict`: the browser sends the cookie with no request of another site. `auto`: the cookie is secure if the connection uses TLS.
const COOKIE = { path: '/', httpOnly: true, sameSite: 'strict', secure: 'auto' } as const

/** Serves GET /sign-in, where a printed link leads, and POST /sign-out, which a button of the home page sends. */
export async function serveSignIn(app: FastifyInstance, signIn: SignIn): Promise<void> {
  // Without a HEAD route, so that a program that previews links does not use the token up.
  app.get<{ Querystring: { token?: unknown } }>('/sign-in', { exposeHeadRoute: false }, async (request, reply) => {
    const { token } = request.query
    const cookie = typeof token === 'string' ? signIn.redeem(token) : undefined
    if (cookie === undefined) return sendPage(reply, 401, INVALID_LINK)
    return reply
      .setCookie(SESSION_COOKIE, cookie, { ...COOKIE, maxAge: SESSION_MS / 1000 })
      .header('cache-control', 'no-store')
      .redirect('/', 303)
  })

  await app.register(async (scope) => {
    // A browser sends a content type even with an empty form, and that type is not JSON.
    ignoreBodies(scope)
    scope.post('/sign-out', async ({ headers }, reply) => {
      if (!isSameOrigin(headers)) {
        const detail = 'expected a request from a page of this server, got another: sign out on the home page'
        throw new ProblemError('forbidden', detail)
      }
      return reply.clearCookie(SESSION_COOKIE, COOKIE).header('cache-control', 'no-store').redirect('/', 303)
    })
  })
}

const INVALID_LINK = {
  title: 'Not signed in · Carillon',
  body: html`<h1>This link does not sign in</h1>
    <p>It works once, within 15 minutes of the start that printed it. Restart Carillon: it prints another one.</p>
    <p><a href="/">To the start page</a></p>`,
}
