/**
 * A Restate service as target. Restate deduplicates by the Idempotency-Key that Carillon sends with every attempt. So its
 * handler runs once per slot, although the first attempt reaches its time limit and the second one attaches to the same invocation.
 *
 * Run: `node examples/restate.ts`
 */
import { once } from 'node:events'
import { createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'

import { createDb, Scheduler, Worker } from '@carillon/core'
import { createHttpTarget } from '@carillon/http'
import { startRestate } from '@carillon/http/testing'
import * as restate from '@restatedev/restate-sdk'

import { startTemporaryPostgres } from './temporary-postgres.ts'

const digest = restate.service({
  name: 'digest',
  handlers: {
    send: async (context: restate.Context, { list }: { list: string }) => {
      await context.run('send', () => process.stdout.write(`sending list ${list}\n`))
      await context.sleep(1500)
      return { sent: 3 }
    },
  },
})
const services = createServer(restate.createEndpointHandler({ services: [digest], logger: () => undefined }))
services.listen(0, '127.0.0.1')
await once(services, 'listening')

await using server = await startRestate()
await server.register(`http://127.0.0.1:${(services.address() as AddressInfo).port}`)
await using database = await startTemporaryPostgres()

const http = createHttpTarget({ allowedHosts: ['127.0.0.1'] })
const scheduler = new Scheduler({ db: createDb(database.pool), targets: new Map([[http.kind, http]]) })
await using worker = new Worker({ databaseUrl: database.url, targets: [http] })
const over = new Promise<void>((resolve) => {
  worker.events.on('attempt.settled', ({ attempt, state }) => {
    process.stdout.write(`attempt ${attempt}: the run is ${state}\n`)
    if (state !== 'retrying') resolve()
  })
})
await worker.start()

const caller = { tenantId: 'default', projectId: 'default', subject: 'user:you' }
const { id } = await scheduler.create(caller, {
  name: 'Digest',
  cadence: { kind: 'once', at: new Date(Date.now() + 2000).toISOString() },
  target: { kind: 'http', url: `${server.ingressUrl}/digest/send`, payload: { list: 'a' }, timeoutSeconds: 1 },
  policy: { retry: { baseSeconds: 1 } },
})
await over

const [line] = await scheduler.listRuns(caller, id)
process.stdout.write(`ledger: ${line?.state ?? 'nothing'} after ${line?.attemptCount ?? 0} attempts\n`)
services.close()
