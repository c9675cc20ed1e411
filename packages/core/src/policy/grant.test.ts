import { describe, expect, test } from 'vitest'

import { checkGrant, type GrantFacts } from './grant.ts'

const NOW = Date.UTC(2026, 0, 5, 9)
const SCOPE = 'graph:execute:a'

function check(grant: Partial<GrantFacts>, requiredScope = SCOPE) {
  return checkGrant({ grant: { expiresAt: null, revokedAt: null, scopes: [SCOPE], ...grant }, now: NOW, requiredScope })
}

describe('I8: the time of a grant', () => {
  test.each([
    ['never expires', null, null],
    ['expires in a millisecond', NOW + 1, null],
    ['expires at this instant', NOW, 'grant_expired'],
    ['expired long ago', NOW - 86_400_000, 'grant_expired'],
  ])('a grant that %s', (_, expiresAt, problem) => {
    expect(check({ expiresAt })).toBe(problem)
  })

  test.each([
    ['before', NOW - 1],
    ['at', NOW],
    ['after', NOW + 1],
  ])('a grant that was revoked %s the instant of the decision is revoked', (_, revokedAt) => {
    expect(check({ revokedAt })).toBe('grant_revoked')
  })

  test('a revoked grant counts as revoked even if it has expired too, whatever its scopes', () => {
    expect(check({ revokedAt: NOW, expiresAt: NOW, scopes: [] })).toBe('grant_revoked')
  })

  test('an expired grant counts as expired whatever its scopes', () => {
    expect(check({ expiresAt: NOW, scopes: [] })).toBe('grant_expired')
  })
})

describe('I8: the scopes of a grant', () => {
  test.each([
    ['graph:execute:a', 'graph:execute:a'],
    ['graph:execute:*', 'graph:execute:a'],
    ['graph:execute:*', 'graph:execute:*'],
    ['http:dispatch:example.com', 'http:dispatch:example.com'],
    ['http:dispatch:localhost:3000', 'http:dispatch:localhost:3000'],
    ['http:dispatch:*', 'http:dispatch:[::1]:3000'],
    ['http:dispatch:*.example.com', 'http:dispatch:api.example.com'],
    ['http:dispatch:*.example.com', 'http:dispatch:a.b.example.com'],
    ['http:dispatch:*.example.com:8443', 'http:dispatch:api.example.com:8443'],
    ['http:dispatch:*.example.com', 'http:dispatch:*.example.com'],
  ])('%s covers %s', (scope, required) => {
    expect(check({ scopes: [scope] }, required)).toBeNull()
  })

  test.each([
    ['graph:execute:a', 'graph:execute:b'],
    ['graph:execute:a', 'graph:execute:ab'],
    ['graph:execute:ab', 'graph:execute:a'],
    ['graph:execute:a', 'graph:execute:*'],
    ['graph:execute:a*', 'graph:execute:ab'],
    ['graph:execute:*', 'graph:execute:'],
    ['graph:execute:*', 'graph:execute'],
    ['graph:execute:*', 'graph:executed:a'],
    ['graph:execute:*', 'http:dispatch:example.com'],
    ['graph:*', 'graph:execute:a'],
    ['graph:*:*', 'graph:execute:a'],
    ['*:execute:*', 'graph:execute:a'],
    ['*', 'graph:execute:a'],
    ['', ''],
    ['graph', 'graph'],
    ['http:dispatch:*.example.com', 'http:dispatch:example.com'],
    ['http:dispatch:*.example.com', 'http:dispatch:.example.com'],
    ['http:dispatch:*.example.com', 'http:dispatch:evilexample.com'],
    ['http:dispatch:*.example.com', 'http:dispatch:api.example.com.evil.net'],
    ['http:dispatch:*.example.com', 'http:dispatch:api.example.com:8443'],
    ['http:dispatch:*.example.com', 'http:dispatch:api.EXAMPLE.com'],
    ['http:dispatch:*.example.com', 'graph:execute:api.example.com'],
    ['http:dispatch:*.example.com', 'http:dispatch:*'],
    ['http:dispatch:api.*.com', 'http:dispatch:api.example.com'],
    ['http:dispatch:localhost:*', 'http:dispatch:localhost:3000'],
    ['http:dispatch:example.com', 'http:dispatch:EXAMPLE.com'],
    ['graph:execute:*', 'graph:execute:a\nb:execute:c'],
  ])('%j does not cover %j', (scope, required) => {
    expect(check({ scopes: [scope] }, required)).toBe('grant_scope')
  })

  test('one scope that covers is enough', () => {
    expect(check({ scopes: ['graph:execute:a', 'http:dispatch:*'] }, 'http:dispatch:example.com')).toBeNull()
  })

  test('a grant without scopes covers nothing', () => {
    expect(check({ scopes: [] })).toBe('grant_scope')
  })
})
