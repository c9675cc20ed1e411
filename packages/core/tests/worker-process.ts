import { Worker } from '../src/worker.ts'
import { ScriptedTarget } from './scripted-target.ts'

/** A worker in a process of its own, with room for one run. Its calls never end, and it prints one line per event. */
const { DATABASE_URL: databaseUrl = '' } = process.env

const target = new ScriptedTarget()
target.script = () => {
  process.stdout.write('called\n')
  return new Promise(() => undefined)
}
const worker = new Worker({ databaseUrl, targets: [target], concurrency: 1 })
worker.events.on('service.failed', ({ service }) => process.stdout.write(`failed ${service}\n`))
await worker.start()
process.stdout.write('started\n')
