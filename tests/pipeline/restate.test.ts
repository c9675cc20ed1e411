import { once } from 'node:events'
import { createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'

import { createDb, Scheduler, Worker } from '@carillon/core'
import { createDatabase } from '@carillon/core/testing'
import { createHttpTarget } from '@carillon/http'
import { FETCH_LIMIT_MS, startRestate } from '@carillon/http/testing'
import * as restate from '@restatedev/restate-sdk'
import { expect, test } from 'vitest'

const CALLER = { tenantId: 'default', projectId: 'default', subject: 'user:alice' }

test(
  'a run whose first attempt is cut at its time limit is retried, and a real Restate runs its handler once (I5)',
  async () => {
    const entered = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    const payloads: unknown[] = []
    const digest = restate.service({
      name: 'digest',
      handlers: {
        send: async (_context: restate.Context, payload: unknown) => {
          payloads.push(payload)
          entered.resolve()
          await release.promise
          return { sent: 3 }
        },
      },
    })
    const services = createServer(restate.createEndpointHandler({ services: [digest], logger: () => undefined }))
    services.listen(0, '127.0.0.1')
    await once(services, 'listening')
    await using server = await startRestate()
    await server.register(`http://127.0.0.1:${(services.address() as AddressInfo).port}`)
    await using database = await createDatabase()
    const http = createHttpTarget({ allowedHosts: ['127.0.0.1'] })
    const scheduler = new Scheduler({ db: createDb(database.pool), targets: new Map([[http.kind, http]]) })
    await using worker = new Worker({ databaseUrl: database.url, targets: [http] })
    const states: string[] = []
    const succeeded = Promise.withResolvers<void>()
    worker.events.on('attempt.settled', ({ state }) => {
      states.push(state)
      // The second attempt finds the invocation of the first one still in progress, and waits for it.
      release.resolve()
      if (state === 'succeeded') succeeded.resolve()
    })
    await worker.start()

    const { id } = await scheduler.create(CALLER, {
      name: 'Digest',
      cadence: { kind: 'cron', expression: '0 9 1 1 *' },
      target: { kind: 'http', url: `${server.ingressUrl}/digest/send`, payload: { list: 'a' }, timeoutSeconds: 1 },
      policy: { retry: { baseSeconds: 1 } },
    })
    const run = await scheduler.runNow(CALLER, id)
    await entered.promise
    await succeeded.promise

    const { attempts } = await scheduler.getRun(CALLER, run.id)
    // The first attempt reaches its time limit. On a busy machine later attempts do too, until one is answered.
    const cut = attempts.slice(0, -1)
    expect(cut.length).toBeGreaterThan(0)
    expect(cut).toMatchObject(cut.map(() => ({ outcome: 'failed', error: { code: 'timeout' } })))
    expect(attempts.at(-1)).toMatchObject({ outcome: 'succeeded', result: { status: 200, body: { sent: 3 } } })
    expect(payloads).toEqual([{ list: 'a' }])
    expect(states).toEqual([...cut.map(() => 'retrying'), 'succeeded'])
    services.close()
  },
  FETCH_LIMIT_MS,
)
