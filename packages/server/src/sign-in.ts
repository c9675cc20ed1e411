import { createHash, createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'

import { systemWallClock, type WallClock } from './clock.ts'

/** The cookie of a browser that is signed in. */
export const SESSION_COOKIE = 'carillon_session'
export const SESSION_MS = 12 * 60 * 60 * 1000
const TOKEN_MS = 15 * 60 * 1000
/** A start issues one; whoever asks for more gets the latest ones. */
const TOKENS_MAX = 16

interface SignInDeps {
  readonly adminKey: string
  /** @default the wall clock */
  readonly clock?: WallClock
}

interface Token {
  readonly digest: Buffer
  readonly expiresAt: number
}

/**
 * Signs a browser in by a link that works once. Who is signed in acts as the installation's admin, so the links go only
 * to who can read what the process prints.
 *
 * A session is a cookie that proves itself: nothing is stored, it survives a restart, and another admin key ends them all.
 */
export class SignIn {
  readonly #clock: WallClock
  readonly #sessionKey: Buffer
  #tokens: readonly Token[] = []

  constructor({ adminKey, clock = systemWallClock }: SignInDeps) {
    this.#clock = clock
    // Derived, so that a forged cookie would not tell the admin key, nor be an answer to anything else made from it.
    this.#sessionKey = Buffer.from(hkdfSync('sha256', adminKey, '', 'carillon session cookie 1', 32))
  }

  issueToken(): string {
    const token = randomBytes(32).toString('base64url')
    const issued = { digest: digestOf(token), expiresAt: this.#clock.now() + TOKEN_MS }
    this.#tokens = [...this.#tokens, issued].slice(-TOKENS_MAX)
    return token
  }

  /** The value of the session's cookie; undefined if the token is not known, used up or too old. */
  redeem(token: string): string | undefined {
    const now = this.#clock.now()
    const digest = digestOf(token)
    const found = this.#tokens.find((issued) => timingSafeEqual(issued.digest, digest))
    this.#tokens = this.#tokens.filter((issued) => issued !== found && issued.expiresAt > now)
    if (found === undefined || found.expiresAt <= now) return undefined
    const expiresAt = String(now + SESSION_MS)
    return `${expiresAt}.${this.#seal(expiresAt).toString('base64url')}`
  }

  accepts(cookie: string): boolean {
    const { expiresAt, seal } = /^(?<expiresAt>\d{1,15})\.(?<seal>[\w-]{43})$/.exec(cookie)?.groups ?? {}
    if (expiresAt === undefined || seal === undefined) return false
    const isGenuine = timingSafeEqual(Buffer.from(seal, 'base64url'), this.#seal(expiresAt))
    return isGenuine && Number(expiresAt) > this.#clock.now()
  }

  #seal(expiresAt: string): Buffer {
    return createHmac('sha256', this.#sessionKey).update(expiresAt).digest()
  }
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
