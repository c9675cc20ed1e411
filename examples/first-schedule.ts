/**
 * A first schedule, from nothing: a Postgres in a temporary folder, an HTTP service to call, a worker, and a schedule that
 * comes due in two seconds. Shows what the service was sent and what the ledger says.
 *
 * Run: `npm run example`
 */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createDb, createPool, migrate, Scheduler, Worker } from '@carillon/core'
import { createHttpTarget } from '@carillon/http'
import { startPostgres } from '@carillon/postgres'

const folder = mkdtempSync(join(tmpdir(), 'carillon-example-'))
chmodSync(folder, 0o711)
const postgres = await startPostgres({ dataDir: join(folder, 'data') })
const pool = createPool({ connectionString: postgres.url })
await migrate(pool)

// The service to call.
const service = createServer((request, response) => {
  request.resume().on('end', () => {
    const { method = '', url = '', headers } = request
    process.stdout.write(`called: ${method} ${url}, key ${String(headers['idempotency-key'])}\n`)
    response.setHeader('content-type', 'application/json').end('{"sent":3}')
  })
})
await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
const { port } = service.address() as AddressInfo

// The worker runs schedules, the scheduler creates them. Usually they are two processes, and there may be any number of each.
const http = createHttpTarget({ allowedHosts: ['127.0.0.1'] })
const worker = new Worker({ databaseUrl: postgres.url, targets: [http] })
await worker.start()
const scheduler = new Scheduler({ db: createDb(pool), targets: new Map([[http.kind, http]]) })

const caller = { tenantId: 'default', projectId: 'default', subject: 'user:you' }
const { description } = await scheduler.preview({
  cadence: { kind: 'cron', expression: '0 9 * * 1-5', timezone: 'Europe/Madrid' },
})
process.stdout.write(`a cadence in words: ${description}\n`)

const settled = new Promise((resolve) => worker.events.on('attempt.settled', resolve))
const schedule = await scheduler.create(caller, {
  name: 'Digest',
  cadence: { kind: 'once', at: new Date(Date.now() + 2000).toISOString() },
  target: { kind: 'http', url: `http://127.0.0.1:${port}/digest`, payload: { list: 'a' } },
})
process.stdout.write(`created: ${schedule.name}, due ${new Date(schedule.nextSlotAt ?? 0).toISOString()}\n`)

await settled
for (const run of await scheduler.listRuns(caller, schedule.id)) {
  const latenessMs = run.begunAt - run.scheduledFor
  process.stdout.write(
    `ledger: ${new Date(run.scheduledFor).toISOString()} ${run.state}, begun ${latenessMs} ms late\n`,
  )
}
const { state } = await scheduler.get(caller, schedule.id)
process.stdout.write(`the schedule is ${state}: it has no further slot\n`)

await worker.stop()
await pool.end()
service.close()
await postgres.stop()
rmSync(folder, { recursive: true, force: true })
