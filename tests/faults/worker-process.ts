import { flushCompileCache } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'

import { Worker } from '@carillon/core'
import { createHttpTarget } from '@carillon/targets'

/**
 * A worker in a process of its own, as `carillon worker --targets http` runs it. If a fault hits it while it starts, it tries
 * again, as a supervisor would have it do. It ends when SIGTERM has drained it: whatever else ends it is a fault of the worker.
 */
const { DATABASE_URL: databaseUrl = '', WORKER_NAME: name = 'worker' } = process.env
const RETRY_MS = 100

let worker = newWorker()
const told = new AbortController()
process.once('SIGTERM', () => {
  told.abort()
  void worker.stop()
})
// A run of faults that is killed leaves no workers behind.
process.stdin.on('end', () => process.exit()).resume()
process.stdin.unref()
while (!(await hasStarted()) && !told.signal.aborted) {
  process.stdout.write('could not start\n')
  await worker.stop()
  await sleep(RETRY_MS)
  worker = newWorker()
}
process.stdout.write('started\n')
// Node writes it when the process ends, which most of these processes do by a kill.
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
