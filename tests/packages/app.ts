// An application that embeds Carillon, in twenty lines. tests/packages/packed.test.ts installs the packages and runs it.
import { createDb, createPool, migrate, Scheduler, Worker } from '@carillon/core'
import { createHttpTarget } from '@carillon/http'
import { startPostgres } from '@carillon/postgres'

await using postgres = await startPostgres({ dataDir: 'data' })
const pool = createPool({ connectionString: postgres.url })
await migrate(pool)
const http = createHttpTarget({ allowedHosts: ['127.0.0.1'] })
const scheduler = new Scheduler({ db: createDb(pool), targets: new Map([[http.kind, http]]) })
const caller = { tenantId: 'acme', projectId: 'garden', subject: 'user:alice' }
await using worker = new Worker({ databaseUrl: postgres.url, targets: [http] })
const settled = new Promise<void>((resolve) => worker.events.on('attempt.settled', () => resolve()))
await worker.start()
const { id } = await scheduler.create(caller, {
  name: 'Digest',
  cadence: { kind: 'once', at: new Date(Date.now() + 500).toISOString() },
  target: { kind: 'http', url: process.argv[2], method: 'GET' },
})
await settled
process.stdout.write(`${(await scheduler.listRuns(caller, id))[0]?.state}\n`)
await pool.end()
