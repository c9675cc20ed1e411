import { flushCompileCache } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'

import { Worker } from '@carillon/core'
import { createHttpTarget } from '@carillon/http'

/**
 * A worker in a process of its own, like `carillon worker --targets http`. If a fault hits it during its start, it tries again, as a
 * supervisor would. It exits once SIGTERM has drained it. Any other exit is a fault of the worker.
 */
const { DATABASE_URL: databaseUrl = '', WORKER_NAME: name = 'worker' } = process.env
const RETRY_MS = 100

let worker = newWorker()
const told = new AbortController()
process.once('SIGTERM', () => {
  told.abort()
  void worker.stop()
})
// If the fault run is killed, its workers exit too.
process.stdin.on('end', () => process.exit()).resume()
process.stdin.unref()
while (!(await hasStarted()) && !told.signal.aborted) {
  process.stdout.write('could not start\n')
  await worker.stop()
  await sleep(RETRY_MS)
  worker = newWorker()
}
process.stdout.write('started\n')
// Node writes the compile cache when a process exits, but most of these processes are killed.
flushCompileCache()

function newWorker(): Worker {
  return new Worker({ databaseUrl, name, targets: [createHttpTarget({ allowedHosts: ['127.0.0.1'] })] })
}

async function hasStarted(): Promise<boolean> {
  try {
    await worker.start()
    return true
  } catch {
    return false
  }
}
