import { describe, expect, test } from 'vitest'

import { CLAIM_MAPPING_DEFAULT, claimedIdentity } from '../../src/auth/claims.ts'

const CLAIMS = { sub: 'alice', tenant: 'acme', project: 'web', role: 'member' }

/** Reads claims from JSON, as a token carries them. JSON can give an object its own property named `__proto__`. */
function read(claims: object | string, mapping: Partial<typeof CLAIM_MAPPING_DEFAULT> = {}) {
  const text = typeof claims === 'string' ? claims : JSON.stringify(claims)
  return claimedIdentity(JSON.parse(text) as Record<string, unknown>, { ...CLAIM_MAPPING_DEFAULT, ...mapping })
}

function identity(subject: string, role: 'member' | 'admin' = 'member') {
  return {
    identity: {
      caller: { tenantId: 'acme', projectId: 'web', subject },
      role,
      keyId: `jwt:acme/web/${subject}`,
      isInstallation: false,
    },
  }
}

describe('the subject of a token', () => {
  test.each([
    ['alice', 'user:alice'],
    ['user:alice', 'user:alice'],
    ['service:billing', 'service:billing'],
    ['auth0|5f7c8ec7c33c6c004bbafe82', 'user:auth0|5f7c8ec7c33c6c004bbafe82'],
    ['alice@example.com', 'user:alice@example.com'],
    ['urn:example:alice', 'user:urn:example:alice'],
    ['agent:seven', 'user:agent:seven'],
    ['System:cron', 'user:System:cron'],
    ['installation', 'user:installation'],
    ['x'.repeat(200), `user:${'x'.repeat(200)}`],
  ])('the claim sub %.60s gives the subject %.60s', (sub, subject) => {
    expect(read({ ...CLAIMS, sub })).toEqual(identity(subject))
  })

  test.each([
    'system:cron',
    'system:',
    'service:installation',
    'service:',
    'user:',
    '',
    'alice smith',
    'alice\n',
    'al\0ice',
    '\ud800',
    'x'.repeat(201),
    7,
    null,
    ['alice'],
    { value: 'alice' },
  ])('the claim sub %j is reported as faulty', (sub) => {
    expect(read({ ...CLAIMS, sub })).toEqual({ faultyClaim: 'sub' })
  })
})

describe('the tenant and the project of a token', () => {
  test.each(['default', 'a', '0', 'acme.web_1-x', 'x'.repeat(100)])(
    'a tenant and a project may be named %.40s',
    (place) => {
      expect(read({ ...CLAIMS, tenant: place, project: place })).toMatchObject({
        identity: { caller: { tenantId: place, projectId: place } },
      })
    },
  )

  test.each(['_platform', '_', '.', '', 'a/b', 'a b', 'acme\n', 'ácme', 'x'.repeat(101), 7, null, ['acme'], {}])(
    'a tenant or a project named %.40j is reported as a faulty claim',
    (place) => {
      expect(read({ ...CLAIMS, tenant: place })).toEqual({ faultyClaim: 'tenant' })
      expect(read({ ...CLAIMS, project: place })).toEqual({ faultyClaim: 'project' })
    },
  )
})

describe('the role of a token', () => {
  test.each([
    ['member', 'member'],
    ['admin', 'admin'],
    [['member'], 'member'],
    [['other', 'admin'], 'admin'],
    [['member', 'admin'], 'admin'],
    [['admin', 'member'], 'admin'],
  ] as const)('the claim role %j gives the role %s', (role, expected) => {
    expect(read({ ...CLAIMS, role })).toEqual(identity('user:alice', expected))
  })

  test.each(['Admin', 'owner', '', 'member admin', [], ['owner'], [['admin']], ['admin', 7], 7, true, null, {}])(
    'the claim role %j is reported as faulty',
    (role) => {
      expect(read({ ...CLAIMS, role })).toEqual({ faultyClaim: 'role' })
    },
  )

  test('the settings can map other values of the claim to the roles', () => {
    const mapping = { adminValues: ['owner', 'maintainer'], memberValues: ['reader'] }

    expect(read({ ...CLAIMS, role: ['maintainer'] }, mapping)).toEqual(identity('user:alice', 'admin'))
    expect(read({ ...CLAIMS, role: 'reader' }, mapping)).toEqual(identity('user:alice', 'member'))
    expect(read({ ...CLAIMS, role: 'admin' }, mapping)).toEqual({ faultyClaim: 'role' })
  })
})

describe('a claim', () => {
  test.each(Object.keys(CLAIMS))('a missing claim is reported by its name: %s', (name) => {
    expect(read({ ...CLAIMS, [name]: undefined })).toEqual({ faultyClaim: name })
  })

  test('a claim may be nested or have dots in its name, and a claim with the full name takes precedence', () => {
    const mapping = { tenantClaim: 'https://example.com/tenant', roleClaim: 'realm_access.roles', projectClaim: 'a.b' }
    const claims = {
      ...CLAIMS,
      'https://example.com/tenant': 'acme',
      realm_access: { roles: ['x', 'admin'] },
      a: { b: 'other' },
      'a.b': 'web',
    }

    expect(read(claims, mapping)).toEqual(identity('user:alice', 'admin'))
  })

  test.each(['roles.0', 'roles.length', 'sub.length', 'nested.missing.deeper', 'nested..role', '.role'])(
    'a claim at the path %s is not found, because the path leads into a value that is not an object',
    (roleClaim) => {
      expect(read({ ...CLAIMS, roles: ['admin'], nested: { role: 'admin' } }, { roleClaim })).toEqual({
        faultyClaim: roleClaim,
      })
    },
  )

  test.each(['__proto__.role', 'constructor.name', 'toString', 'hasOwnProperty.name', 'nested.__proto__.role'])(
    'a claim at the path %s is not found, because every object inherits that property',
    (roleClaim) => {
      expect(read({ ...CLAIMS, nested: {} }, { roleClaim, adminValues: ['Object', 'hasOwnProperty'] })).toEqual({
        faultyClaim: roleClaim,
      })
    },
  )

  test('a property that other code added to Object.prototype is not read as a claim', () => {
    Reflect.defineProperty(Object.prototype, 'role', { value: 'admin', configurable: true })
    try {
      expect(read({ ...CLAIMS, role: undefined })).toEqual({ faultyClaim: 'role' })
      expect(read({ ...CLAIMS, nested: {} }, { roleClaim: 'nested.role' })).toEqual({ faultyClaim: 'nested.role' })
    } finally {
      Reflect.deleteProperty(Object.prototype, 'role')
    }
  })

  test('a property of __proto__ in the JSON of a token is not read as a claim', () => {
    const claims = `{"sub":"alice","tenant":"acme","project":"web","__proto__":{"role":"admin"}}`

    expect(read(claims)).toEqual({ faultyClaim: 'role' })
    expect(({} as { role?: string }).role).toBeUndefined()
  })
})
