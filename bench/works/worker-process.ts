/** A worker in a process of its own. Tells the bench when it is up, and what it has settled by when. */
import { nowMs } from '../clock.ts'
import { startCarillon } from './carillon-worker.ts'
import { argumentOf, endWithBench, tell } from './channel.ts'
import { noopTarget } from './noop-target.ts'
import type { WorkerMessage } from './worker-message.ts'

const { url } = argumentOf() as { readonly url: string }
let firstAt: number | null = null
let settled = 0
let isTelling = false

const worker = await startCarillon(
  url,
  noopTarget(() => (firstAt ??= nowMs())),
)
worker.events.on('attempt.settled', () => {
  settled += 1
  if (isTelling) return
  isTelling = true
  // Once for all that one commit settled.
  setImmediate(() => {
    isTelling = false
    send({ failure: null })
  })
})
worker.failed.catch((error: unknown) => {
  send({ failure: error instanceof Error ? error.message : String(error) })
})
endWithBench(async () => worker[Symbol.asyncDispose]())
send({ failure: null })

function send({ failure }: Pick<WorkerMessage, 'failure'>): void {
  tell({ settled, firstAt, at: nowMs(), failure } satisfies WorkerMessage)
}
