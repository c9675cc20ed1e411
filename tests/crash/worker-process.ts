import { Worker } from '@carillon/core'
import { createHttpTarget } from '@carillon/http'

/** A worker in its own process, which a test kills, pauses or drains. It exits by itself once it has drained. */
const { DATABASE_URL: databaseUrl = '', WORKER_NAME: name = 'worker', HEARTBEAT_MS: heartbeatMs = '1000' } = process.env

const worker = new Worker({
  databaseUrl,
  name,
  heartbeatMs: Number(heartbeatMs),
  targets: [createHttpTarget({ allowedHosts: ['127.0.0.1'] })],
})
process.once('SIGTERM', () => void worker.stop())
await worker.start()
process.stdout.write('started\n')
