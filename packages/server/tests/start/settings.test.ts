import { join } from 'node:path'

import { expect, test } from 'vitest'

import { OperatorError } from '../../src/start/operator-error.ts'
import { readSettings, type Settings } from '../../src/start/settings.ts'

function refusalOf(env: Record<string, string>, flags: Partial<Settings> = {}): string {
  try {
    readSettings(env, flags)
  } catch (error) {
    if (error instanceof OperatorError && error.code === 'settings_invalid') return error.message
    throw error
  }
  return 'nothing was refused'
}

test('without any variable everything runs on this machine, with its data in a folder of the working directory', () => {
  expect(readSettings({})).toEqual({
    host: '127.0.0.1',
    port: 7400,
    dataDir: join(process.cwd(), '.carillon'),
    databaseUrl: null,
    schema: 'carillon',
    adminKey: null,
    allowedTargets: null,
    requestsPerMinute: null,
    maxSchedulesPerProject: 500,
    maxSchedulesPerUser: 50,
    minimumSeconds: 60,
    retentionDays: 90,
    transcriptBytes: 262_144,
    modules: [],
    publicUrl: null,
    variables: {},
    folder: process.cwd(),
    logLevel: 'info',
    jwt: null,
    openFga: null,
    secretsKeys: null,
  })
})

test('every variable is read, and one that is empty counts as unset', () => {
  const env = {
    CARILLON_HOST: '::1',
    CARILLON_PORT: '0',
    CARILLON_DATA_DIR: '/var/lib/carillon',
    DATABASE_URL: 'postgresql://carillon:secret@db:5432/carillon?sslmode=require',
    CARILLON_SCHEMA: 'second_one',
    CARILLON_ADMIN_KEY: 'abcdefghijklmnopqrstuvwx',
    CARILLON_ALLOWED_TARGETS: 'digest.internal:8443, *.hooks.example.com,[::1]',
    CARILLON_RATE_LIMIT: '600',
    CARILLON_MAX_SCHEDULES_PER_PROJECT: '20000',
    CARILLON_MAX_SCHEDULES_PER_USER: 'none',
    CARILLON_MIN_INTERVAL_SECONDS: '1',
    CARILLON_RETENTION_DAYS: '400',
    CARILLON_TRANSCRIPT_BYTES: '1000000',
    CARILLON_PUBLIC_URL: 'https://carillon.example.com/scheduler/',
    CARILLON_MODULES: './billing.ts, @acme/graphs,',
    CARILLON_BILLING_URL: 'https://billing.example.com',
    CARILLON_SECRETS_KEY: `${Buffer.alloc(32, 1).toString('base64')},${Buffer.alloc(32, 2).toString('base64url')}`,
    CARILLON_LOG_LEVEL: 'debug',
    CARILLON_JWT_ISSUER: 'https://login.example.com/',
    CARILLON_JWT_AUDIENCE: 'carillon',
    CARILLON_JWT_JWKS_URL: 'https://login.example.com/jwks',
    CARILLON_OPENFGA_URL: 'https://fga.example.com',
    CARILLON_OPENFGA_STORE_ID: '01YCP46JKYM8FJCQ37NMBYHE5X',
  }

  expect(readSettings(env)).toEqual({
    host: '::1',
    port: 0,
    dataDir: '/var/lib/carillon',
    databaseUrl: env.DATABASE_URL,
    schema: 'second_one',
    adminKey: env.CARILLON_ADMIN_KEY,
    allowedTargets: ['digest.internal:8443', '*.hooks.example.com', '[::1]'],
    requestsPerMinute: 600,
    maxSchedulesPerProject: 20_000,
    maxSchedulesPerUser: null,
    minimumSeconds: 1,
    retentionDays: 400,
    transcriptBytes: 1_000_000,
    modules: ['./billing.ts', '@acme/graphs'],
    publicUrl: 'https://carillon.example.com/scheduler',
    variables: { CARILLON_BILLING_URL: env.CARILLON_BILLING_URL },
    folder: process.cwd(),
    logLevel: 'debug',
    jwt: expect.objectContaining({ issuer: env.CARILLON_JWT_ISSUER }) as unknown,
    openFga: expect.objectContaining({ url: env.CARILLON_OPENFGA_URL }) as unknown,
    secretsKeys: [Buffer.alloc(32, 1), Buffer.alloc(32, 2)],
  })
  expect(readSettings(Object.fromEntries(Object.keys(env).map((name) => [name, ' '])))).toEqual({
    ...readSettings({}),
    variables: { CARILLON_BILLING_URL: ' ' },
  })
})

test('a flag takes precedence over its variable, even if the flag is null', () => {
  const env = { CARILLON_PORT: '1', DATABASE_URL: 'postgres://db/carillon' }

  expect(readSettings(env, { port: 8080, databaseUrl: null, allowedTargets: ['localhost'] })).toMatchObject({
    port: 8080,
    databaseUrl: null,
    allowedTargets: ['localhost'],
  })
  expect(readSettings({ CARILLON_JWT_ISSUER: 'half of it' }, { jwt: null })).toMatchObject({ jwt: null })
})

test.each([
  ['CARILLON_PORT', '70000', 'expected a port from 0 (any that is free) to 65535, got "70000"'],
  ['CARILLON_PORT', '74oo', 'expected a port from 0 (any that is free) to 65535, got "74oo"'],
  [
    'CARILLON_HOST',
    'http://localhost',
    'expected an address or a host name to listen on, such as 127.0.0.1 or ::, got "http://localhost"',
  ],
  [
    'CARILLON_ALLOWED_TARGETS',
    'localhost,https://x.example',
    'expected a host such as api.example.com, *.example.com, 127.0.0.1 or [::1], with :port or without, or *, ' +
      'got "https://x.example"',
  ],
  ['CARILLON_RATE_LIMIT', '0', 'expected a whole number of requests per minute, 1 or more, got "0"'],
  ['CARILLON_RATE_LIMIT', '1.5', 'expected a whole number of requests per minute, 1 or more, got "1.5"'],
  [
    'CARILLON_MAX_SCHEDULES_PER_PROJECT',
    '0',
    'expected a whole number of schedules from 1 to 1000000, or none, got "0"',
  ],
  [
    'CARILLON_MAX_SCHEDULES_PER_USER',
    '1e3',
    'expected a whole number of schedules from 1 to 1000000, or none, got "1e3"',
  ],
  ['CARILLON_MIN_INTERVAL_SECONDS', '0', 'expected a whole number of seconds from 1 to 86400, got "0"'],
  ['CARILLON_RETENTION_DAYS', '6', 'expected a whole number of days from 7 to 3650, got "6"'],
  ['CARILLON_RETENTION_DAYS', '3651', 'expected a whole number of days from 7 to 3650, got "3651"'],
  ['CARILLON_TRANSCRIPT_BYTES', '256k', 'expected a whole number of bytes from 65536 to 16777216, got "256k"'],
  [
    'CARILLON_SECRETS_KEY',
    Buffer.alloc(31, 7).toString('base64'),
    'expected comma-separated keys of 32 bytes each in base64, got something else',
  ],
  ['CARILLON_LOG_LEVEL', 'loud', 'expected one of silent, error, warn, info, debug, got "loud"'],
])('%s=%s is refused with the name of the variable', (variable, value, message) => {
  expect(refusalOf({ [variable]: value })).toBe(`${variable}: ${message}`)
})

test('an invalid flag is refused with the name of the flag', () => {
  expect(refusalOf({ CARILLON_PORT: '80' }, { port: -1 })).toBe(
    '--port: expected a port from 0 (any that is free) to 65535, got "-1"',
  )
})

test('an invalid setting that a program passes, and that no command has a flag for, is refused with the name of its variable', () => {
  expect(refusalOf({}, { schema: 'Public' })).toMatch(/^CARILLON_SCHEMA: expected /)
  expect(refusalOf({}, { retentionDays: 6 })).toBe(
    'CARILLON_RETENTION_DAYS: expected a whole number of days from 7 to 3650, got "6"',
  )
})

test('an admin key that is too short, or cannot be sent in a header, is refused and not quoted', () => {
  const expected = 'CARILLON_ADMIN_KEY: expected 24 characters or more, each of them visible ASCII'

  expect(refusalOf({ CARILLON_ADMIN_KEY: 'hunter2' })).toBe(`${expected}, got only 7 characters`)
  expect(refusalOf({ CARILLON_ADMIN_KEY: 'a pass phrase with blanks in it' })).toBe(
    `${expected}, got a character that is not visible ASCII`,
  )
  expect(refusalOf({ CARILLON_ADMIN_KEY: 'hunter 2' })).toBe(
    `${expected}, got only 8 characters, and a character that is not visible ASCII`,
  )
})

test('an invalid database URL is refused without quoting its password', () => {
  const expected = 'DATABASE_URL: expected a URL such as postgres://user:password@host:5432/database'

  expect(refusalOf({ DATABASE_URL: 'mysql://root:hunter2@db/x' })).toBe(
    `${expected}, got a mysql:// URL that cannot be read`,
  )
  expect(refusalOf({ DATABASE_URL: 'postgres://root:hunter2@db:port/x' })).toBe(
    `${expected}, got a postgres:// URL that cannot be read`,
  )
  expect(refusalOf({ DATABASE_URL: 'root:hunter2@db' })).toBe(`${expected}, got something that is no URL`)
})
