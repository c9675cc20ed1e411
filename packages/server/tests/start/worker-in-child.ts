import { registerHooks } from 'node:module'

/** Starts a worker with the settings of its environment and the targets in TARGETS, and prints what code it has loaded. Then it stops. */
const loaded: string[] = []
registerHooks({
  load: (url, context, next) => {
    loaded.push(url)
    return next(url, context)
  },
})
const { readSettings, startWorker } = await import('../../src/index.ts')
const targetKinds = (process.env['TARGETS'] ?? '').split(',')
const worker = await startWorker(readSettings(process.env), { targetKinds, metricsPort: null })
process.stdout.write(JSON.stringify(loaded))
await worker.stop()
