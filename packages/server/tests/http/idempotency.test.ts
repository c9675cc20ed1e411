import type { Schedule } from '@carillon/api'
import type { TestDatabase } from '@carillon/core/testing'
import { afterAll, expect, test } from 'vitest'

import { DIGEST } from './example-schedules.ts'
import { createTestApp } from './test-app.ts'

const world = await createTestApp()
const { admin, request } = world
afterAll(() => world[Symbol.asyncDispose]())

function create(key: string, body: object = DIGEST) {
  return request('POST', '/api/v1/schedules', { headers: { 'idempotency-key': key }, body })
}

test('a request that is repeated with its key creates one schedule and gets the same answer', async () => {
  const first = await create('order 1')
  const second = await create('order 1')

  expect(first.headers['idempotency-replayed']).toBeUndefined()
  expect(second.headers['idempotency-replayed']).toBe('true')
  expect(second.statusCode).toBe(201)
  expect(second.headers.location).toBe(first.headers.location)
  expect(second.headers.etag).toBe('"1"')
  expect(second.json()).toEqual(first.json())
})

test('the answer to a repeated request stays the same after an edit', async () => {
  const first = await create('order 2')
  await admin.schedules.edit(first.json<Schedule>().id, { name: 'Edited' })

  expect((await create('order 2')).json()).toEqual(first.json())
})

test('a different request with the same key is refused with 422', async () => {
  await create('order 3')

  const answer = await create('order 3', { ...DIGEST, name: 'Another' })

  expect(answer.json()).toMatchObject({
    status: 422,
    code: 'idempotency_key_reused',
    errors: [{ field: 'Idempotency-Key' }],
  })
})

test('a request that arrives while another one with its key is in progress gets 409, with a Retry-After of one second', async () => {
  const { pool } = world.database
  const client = await pool.connect()
  try {
    // This lock makes every insert of a schedule wait, so the first request stays in progress.
    await client.query('begin; lock table carillon.schedules in share row exclusive mode')
    const first = create('order 4')
    await whenWaiting(world.database)

    const second = await create('order 4')

    expect(second.json()).toMatchObject({ status: 409, code: 'idempotency_in_flight' })
    expect(second.headers['retry-after']).toBe('1')
    await client.query('rollback')
    expect((await first).statusCode).toBe(201)
  } finally {
    client.release()
  }
})

test.each(['', 'x'.repeat(256), 'ключ'])('the key %j is refused with a problem that names its header', async (key) => {
  const answer = await create(Buffer.from(key).toString('latin1'))

  expect(answer.json()).toMatchObject({ status: 400, errors: [{ field: 'Idempotency-Key' }] })
})

/** Resolves once a statement in the test's database waits for a lock. */
async function whenWaiting({ pool }: TestDatabase): Promise<void> {
  for (;;) {
    const { rowCount } = await pool.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    if (rowCount !== 0) return
  }
}
