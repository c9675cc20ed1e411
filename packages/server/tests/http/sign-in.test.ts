import { expect, test } from 'vitest'

import { SignIn } from '../../src/http/sign-in.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const adminKey = 'abcdefghijklmnopqrstuvwxyz'

/** A clock that moves only when a test moves it. */
function createClock(start = Date.UTC(2026, 2, 2, 9)) {
  let now = start
  return { now: () => now, advance: (ms: number) => (now += ms) }
}

function redeemed(signIn: SignIn): string {
  return signIn.redeem(signIn.issueToken()) ?? 'refused'
}

test('a sign-in token opens one session', () => {
  const signIn = new SignIn({ adminKey, clock: createClock() })
  const token = signIn.issueToken()

  const cookie = signIn.redeem(token)

  expect(token).toMatch(/^[\w-]{43}$/)
  expect(signIn.accepts(cookie ?? '')).toBe(true)
  expect(signIn.redeem(token)).toBeUndefined()
})

test('an unknown token, or a token of another process, opens no session', () => {
  const clock = createClock()
  const signIn = new SignIn({ adminKey, clock })
  const other = new SignIn({ adminKey, clock })

  expect(signIn.redeem('')).toBeUndefined()
  expect(signIn.redeem(other.issueToken())).toBeUndefined()
})

test('a sign-in token is valid for 15 minutes', () => {
  const clock = createClock()
  const signIn = new SignIn({ adminKey, clock })
  const [inTime, tooLate] = [signIn.issueToken(), signIn.issueToken()]

  clock.advance(15 * MINUTE - 1)
  expect(signIn.redeem(inTime)).toBeDefined()
  clock.advance(1)
  expect(signIn.redeem(tooLate)).toBeUndefined()
})

test('a session lasts 12 hours, survives restarts, and ends if the admin key changes', () => {
  const clock = createClock()
  const cookie = redeemed(new SignIn({ adminKey, clock }))
  const restarted = new SignIn({ adminKey, clock })

  expect(new SignIn({ adminKey: `${adminKey}!`, clock }).accepts(cookie)).toBe(false)
  clock.advance(12 * HOUR - 1)
  expect(restarted.accepts(cookie)).toBe(true)
  clock.advance(1)
  expect(restarted.accepts(cookie)).toBe(false)
})

test('a changed or forged cookie is refused', () => {
  const signIn = new SignIn({ adminKey, clock: createClock() })
  const cookie = redeemed(signIn)
  const [expiresAt = '', seal = ''] = cookie.split('.')

  const forged = [
    `${Number(expiresAt) + HOUR}.${seal}`,
    `${expiresAt}.${seal.startsWith('A') ? 'B' : 'A'}${seal.slice(1)}`,
    `${expiresAt}.${seal.slice(1)}`,
    `${expiresAt}.`,
    `.${seal}`,
    `${cookie} `,
    `0${cookie}`,
    'NaN.x',
    '',
  ]

  for (const each of forged) expect(signIn.accepts(each), each).toBe(false)
  expect(cookie).not.toContain(adminKey)
})

test('of many unused tokens, only the latest stay valid', () => {
  const signIn = new SignIn({ adminKey, clock: createClock() })
  const tokens = Array.from({ length: 17 }, () => signIn.issueToken())

  expect(signIn.redeem(tokens[0] ?? '')).toBeUndefined()
  expect(signIn.redeem(tokens[1] ?? '')).toBeDefined()
})
