import { createDb, createPool } from '@carillon/core'
import { createDatabase } from '@carillon/core/testing'
import { describe, expect, test } from 'vitest'

import { isUnreachableDatabase } from '../../src/http/database-errors.ts'
import { DIGEST } from './example-schedules.ts'
import { createTestApp } from './test-app.ts'

const NOWHERE = 'postgres://nobody@127.0.0.1:1/nothing'
const REFUSED = { status: 503, code: 'unavailable', detail: expect.stringContaining('try again') as unknown }

describe('while the database is unreachable', () => {
  test('every request that needs it gets 503 with a Retry-After', async () => {
    await using database = await createDatabase({ content: 'empty' })
    const pool = createPool({ connectionString: NOWHERE })
    await using world = await createTestApp({ database, db: createDb(pool) })

    for (const [method, path, body] of [
      ['GET', 'schedules', undefined],
      ['POST', 'schedules', DIGEST],
      ['GET', 'events', undefined],
      ['GET', 'schedules.ics', undefined],
      ['POST', 'cadence/preview', { cadence: DIGEST.cadence }],
      ['POST', 'audit', undefined],
    ] as const) {
      const answer = await world.request(method, `/api/v1/${path}`, { body })

      expect(answer.json()).toMatchObject(REFUSED)
      expect(answer.headers['retry-after']).toBe('1')
      expect(answer.body).not.toMatch(/ECONN|127\.0\.0\.1/)
    }
    expect(world.log[0]).toMatchObject({ level: 'error', problem: 'unavailable', error: { code: 'ECONNREFUSED' } })
    await pool.end()
  })

  test('a key cannot be checked, and is not reported as wrong', async () => {
    await using database = await createDatabase()
    await using sound = await createTestApp({ database })
    const { key } = await sound.admin.keys.create({ project: 'default', subject: 'user:a', role: 'admin' })
    const pool = createPool({ connectionString: NOWHERE })
    await using world = await createTestApp({ database, db: createDb(pool) })

    expect((await world.request('GET', '/api/v1/schedules', { key })).json()).toMatchObject(REFUSED)
    await pool.end()
  })

  test('/healthz still answers 200', async () => {
    const pool = createPool({ connectionString: NOWHERE })
    await using database = await createDatabase({ content: 'empty' })
    await using world = await createTestApp({ database, db: createDb(pool) })

    expect((await world.request('GET', '/healthz', { key: null })).statusCode).toBe(200)
    await pool.end()
  })

  test('a database without tables gives 500, not 503', async () => {
    await using database = await createDatabase({ content: 'empty' })
    await using world = await createTestApp({ database })

    const answer = await world.request('GET', '/api/v1/schedules')

    expect(answer.json()).toMatchObject({ status: 500, code: 'internal' })
  })
})

describe('errors that mean that the database is unreachable', () => {
  const ofPostgres = (code: string): Error => Object.assign(new Error('x'), { code, severity: 'ERROR' })

  test.each([
    '08006',
    '08P01',
    '53300',
    '57P01',
    '57P03',
    '57014',
    '55P03',
    '40001',
    '25006',
    '25P03',
    '3D000',
    '28P01',
  ])('an error with SQLSTATE %s means that the database is unreachable', (code) =>
    expect(isUnreachableDatabase(ofPostgres(code))).toBe(true),
  )

  test('an error with a severity that ends the session means that the database is unreachable, whatever its SQLSTATE', () => {
    const error = Object.assign(new Error('x'), { code: '55000', severity: 'FATAL' })

    expect(isUnreachableDatabase(error)).toBe(true)
  })

  test.each(['23505', '42P01', '22P02', '54001', 'XX000'])(
    'an error with SQLSTATE %s does not mean that the database is unreachable',
    (code) => expect(isUnreachableDatabase(ofPostgres(code))).toBe(false),
  )

  test.each(['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'ETIMEDOUT'])(
    'a socket error with the code %s means that the database is unreachable',
    (code) => {
      const error = Object.assign(new Error('x'), { code })

      expect(isUnreachableDatabase(error)).toBe(true)
      expect(isUnreachableDatabase(new AggregateError([error, error]))).toBe(true)
    },
  )

  test.each([
    'Connection terminated unexpectedly',
    'Connection terminated due to connection timeout',
    'Query read timeout',
    'timeout exceeded when trying to connect',
    'Cannot use a pool after calling end on the pool',
  ])('the driver error %s means that the database is unreachable', (message) => {
    expect(isUnreachableDatabase(new Error(message))).toBe(true)
    expect(isUnreachableDatabase(new Error('x', { cause: new Error(message) }))).toBe(true)
  })

  test.each([new TypeError('x is not a function'), new AggregateError([]), undefined, 'ECONNREFUSED', null])(
    'the error %o does not mean that the database is unreachable',
    (error) => expect(isUnreachableDatabase(error)).toBe(false),
  )
})
