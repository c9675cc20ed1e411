import { createDatabase } from '@carillon/core/testing'
import { describe, expect, test } from 'vitest'

import { DIGEST, UNKNOWN_ID } from './example-schedules.ts'
import { exchange } from './raw-exchange.ts'
import { createTestApp } from './test-app.ts'

const CANARY = 'canary-7400'

describe('the request log', () => {
  test('has one line per request, with the pattern of its route and its caller', async () => {
    await using world = await createTestApp()
    const { id, key } = await world.admin.keys.create({
      tenant: 'acme',
      project: 'web',
      subject: 'user:a',
      role: 'member',
    })

    await world.request('GET', `/api/v1/schedules/${UNKNOWN_ID}`, { key })
    await world.request('GET', '/healthz', { key: null })
    await world.request('GET', '/nothing', { key: null })

    expect(world.log.filter(({ msg }) => msg === 'request')).toEqual([
      expect.objectContaining({ method: 'POST', route: '/api/v1/keys', status: 201, keyId: 'installation' }),
      {
        level: 'info',
        time: expect.any(String) as unknown,
        msg: 'request',
        requestId: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
        method: 'GET',
        route: '/api/v1/schedules/:id',
        status: 404,
        durationMs: expect.any(Number) as unknown,
        keyId: id,
        tenant: 'acme',
        project: 'web',
        problem: 'schedule_not_found',
      },
      expect.objectContaining({ method: 'GET', route: '/healthz', status: 200 }),
      expect.objectContaining({ route: null, status: 404, problem: 'route_not_found' }),
    ])
  })

  test('identifies a request by the id in its answer', async () => {
    await using world = await createTestApp()

    const answer = await world.request('GET', '/api/v1/schedules', { key: null })

    expect(world.log).toMatchObject([{ requestId: answer.headers['x-request-id'], problem: 'unauthenticated' }])
  })

  test('never quotes the path, query, headers, cookies, body, key or payload of a request', async () => {
    await using world = await createTestApp()
    const url = await world.listen()
    const headers = {
      'x-canary': CANARY,
      cookie: `carillon_session=${CANARY}; other=${CANARY}`,
      referer: `http://x/${CANARY}`,
      'user-agent': CANARY,
      'x-request-id': CANARY,
      'x-forwarded-for': CANARY,
      'if-match': CANARY,
      'idempotency-key': CANARY,
      'last-event-id': CANARY,
    }
    const payload = { [CANARY]: CANARY }
    const bodies: unknown[] = [
      { ...DIGEST, name: CANARY, target: { ...DIGEST.target, payload } },
      { ...DIGEST, [CANARY]: 1, target: { kind: CANARY }, cadence: { kind: 'cron', expression: CANARY } },
      `{"${CANARY}": `,
      `{"__proto__": "${CANARY}"}`,
    ]

    for (const body of bodies) {
      for (const key of [undefined, CANARY]) {
        const options = { headers, body, ...(key === undefined ? {} : { key }) }
        await world.request('POST', '/api/v1/schedules', options)
        await world.request('PATCH', `/api/v1/schedules/${CANARY}?${CANARY}=${CANARY}`, options)
      }
    }
    for (const path of ['schedules', 'runs', 'events', 'schedules.ics']) {
      await world.request('GET', `/api/v1/${path}?q=${CANARY}`, { headers })
    }
    await world.request('GET', `/${CANARY}`, { headers })
    await world.request('GET', `/%zz${CANARY}`, { headers })
    await world.request('GET', `/api/v1/schedules`, { key: null, headers: { authorization: `Basic ${CANARY}` } })
    await exchange(url, `GET /${CANARY} HTTP/1.1\r\nHost: ${CANARY}\r\nContent-Length: ${CANARY}\r\n\r\n`)

    expect(world.log).toHaveLength(8 * 2 + 4 + 4)
    expect(JSON.stringify(world.log)).not.toContain(CANARY)
  })

  test('contains the stack of an unexpected error, but no parameter of a statement', async () => {
    await using database = await createDatabase()
    await using world = await createTestApp({ database })
    // Like a constraint violation, this error quotes the refused value.
    await database.pool.query(`
      create function carillon.refuse() returns trigger language plpgsql as $$
        begin raise exception 'refused %', to_jsonb(new) using errcode = '22000', detail = to_jsonb(new)::text; end $$;
      create trigger refused before insert on carillon.schedule_revisions for each row execute function carillon.refuse()`)

    const answer = await world.request('POST', '/api/v1/schedules', { body: { ...DIGEST, name: CANARY } })

    expect(answer.json()).toMatchObject({ status: 500, code: 'internal' })
    expect(answer.body).not.toContain(CANARY)
    expect(answer.body).not.toMatch(/insert|22000|stack|\.ts/)
    const [line] = world.log
    expect(line).toMatchObject({ level: 'error', status: 500, problem: 'internal' })
    expect(line).toMatchObject({ error: { code: '22000' } })
    expect(JSON.stringify(line)).toMatch(/at .*\.(ts|js):\d+/)
    expect(JSON.stringify(line)).not.toContain(CANARY)
  })

  test('quotes an error that is not from Postgres, and the answer does not', async () => {
    await using world = await createTestApp({ readiness: () => Promise.reject(new TypeError('a fault of ours')) })

    const answer = await world.request('GET', '/readyz')

    expect(answer.json()).toMatchObject({ status: 500, code: 'internal' })
    expect(answer.body).not.toContain('a fault of ours')
    expect(world.log[0]).toMatchObject({ error: { name: 'TypeError', message: 'a fault of ours' } })
  })
})
