import { describe, expect, test } from 'vitest'

import { readJwtSettings } from '../../src/start/access-settings.ts'
import { OperatorError } from '../../src/start/operator-error.ts'

const ENV = {
  CARILLON_JWT_ISSUER: 'https://login.example.com/',
  CARILLON_JWT_AUDIENCE: 'carillon',
  CARILLON_JWT_JWKS_URL: 'https://login.example.com/.well-known/jwks.json',
}

function refusalOf(env: Record<string, string>): string {
  try {
    readJwtSettings(env)
  } catch (error) {
    if (error instanceof OperatorError && error.code === 'settings_invalid') return error.message
    throw error
  }
  return 'nothing was refused'
}

test('tokens are refused unless an issuer is configured', () => {
  expect(readJwtSettings({})).toBeNull()
  expect(readJwtSettings({ CARILLON_JWT_ISSUER: ' ' })).toBeNull()
})

test('the issuer, the audience and the URL of its keys suffice', () => {
  expect(readJwtSettings(ENV)).toEqual({
    issuer: ENV.CARILLON_JWT_ISSUER,
    audience: 'carillon',
    jwksUrl: ENV.CARILLON_JWT_JWKS_URL,
    algorithms: ['RS256', 'PS256', 'ES256', 'EdDSA'],
    claims: {
      tenantClaim: 'tenant',
      projectClaim: 'project',
      subjectClaim: 'sub',
      roleClaim: 'role',
      adminValues: ['admin'],
      memberValues: ['member'],
    },
  })
})

test('every variable is read', () => {
  const env = {
    ...ENV,
    CARILLON_JWT_ALGORITHMS: 'ES384, Ed25519',
    CARILLON_JWT_TENANT_CLAIM: 'https://example.com/tenant',
    CARILLON_JWT_PROJECT_CLAIM: 'place.project',
    CARILLON_JWT_SUBJECT_CLAIM: 'email',
    CARILLON_JWT_ROLE_CLAIM: 'realm_access.roles',
    CARILLON_JWT_ADMIN_VALUES: 'owner,maintainer',
    CARILLON_JWT_MEMBER_VALUES: 'reader',
  }

  expect(readJwtSettings(env)).toMatchObject({
    algorithms: ['ES384', 'Ed25519'],
    claims: {
      tenantClaim: 'https://example.com/tenant',
      projectClaim: 'place.project',
      subjectClaim: 'email',
      roleClaim: 'realm_access.roles',
      adminValues: ['owner', 'maintainer'],
      memberValues: ['reader'],
    },
  })
})

describe('settings that need each other', () => {
  const together = 'set CARILLON_JWT_ISSUER, CARILLON_JWT_AUDIENCE and CARILLON_JWT_JWKS_URL together, or none'

  test.each(Object.keys(ENV))('the settings are refused without %s', (missing) => {
    const { [missing]: _left, ...env } = ENV as Record<string, string>
    const [present = ''] = Object.keys(env)

    expect(refusalOf(env)).toBe(`${missing}: expected a value because ${present} has one, got nothing: ${together}`)
  })

  test('a claim setting without any of the three is refused', () => {
    expect(refusalOf({ CARILLON_JWT_TENANT_CLAIM: 'org' })).toBe(
      'CARILLON_JWT_ISSUER, CARILLON_JWT_AUDIENCE, CARILLON_JWT_JWKS_URL: expected a value because ' +
        `CARILLON_JWT_TENANT_CLAIM has one, got nothing: ${together}`,
    )
  })
})

describe('pinned algorithms', () => {
  test.each(['HS256', 'HS384', 'HS512', 'none', 'None', 'NONE', 'dir', 'rs256', 'RS256,HS256', 'RS256,none', 'RS256,'])(
    'the algorithm list %s is refused',
    (text) => {
      expect(refusalOf({ ...ENV, CARILLON_JWT_ALGORITHMS: text })).toBe(
        'CARILLON_JWT_ALGORITHMS: expected a comma-separated list of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, ' +
          `Ed25519, got ${JSON.stringify(text)}`,
      )
    },
  )
})

describe('the URL of the keys', () => {
  test.each([
    'https://login.example.com/jwks',
    'http://localhost:8080/jwks',
    'http://127.0.0.1/jwks',
    'http://127.1/jwks',
    'http://[::1]:9000/jwks',
  ])('%s is accepted', (url) => {
    expect(readJwtSettings({ ...ENV, CARILLON_JWT_JWKS_URL: url })).toMatchObject({ jwksUrl: url })
  })

  test.each([
    ['http://login.example.com/jwks', '"http://login.example.com/jwks"'],
    ['http://localhost.example.com/', '"http://localhost.example.com/"'],
    ['http://127.0.0.1.example.com/', '"http://127.0.0.1.example.com/"'],
    ['http://10.0.0.7/jwks', '"http://10.0.0.7/jwks"'],
    ['file:///etc/jwks.json', '"file:///etc/jwks.json"'],
    ['https://login.example.com/jwks#x', '"https://login.example.com/jwks#x"'],
    ['https://carillon:hunter2@login.example.com/jwks', 'one with credentials'],
    ['login.example.com', 'something that is no URL'],
  ])('%s is refused', (url, told) => {
    expect(refusalOf({ ...ENV, CARILLON_JWT_JWKS_URL: url })).toBe(
      `CARILLON_JWT_JWKS_URL: expected a URL of https, or of http on this machine, without credentials, got ${told}`,
    )
  })
})

test.each([
  ['CARILLON_JWT_ISSUER', 'two words', 'a text without blanks'],
  ['CARILLON_JWT_ROLE_CLAIM', 'a..b', 'the name of a claim, or a path of names joined by dots'],
  ['CARILLON_JWT_ADMIN_VALUES', 'admin,,owner', 'comma-separated values'],
])('%s=%s is refused with the name of the variable', (variable, value, expected) => {
  expect(refusalOf({ ...ENV, [variable]: value })).toBe(
    `${variable}: expected ${expected}, got ${JSON.stringify(value)}`,
  )
})
