/** A worker in its own process. It tells the bench when it is up, and how many runs it has settled. */
import { nowMs } from '../clock.ts'
import { startCarillon } from './carillon-worker.ts'
import { argumentOf, endWithBench, tell } from './channel.ts'
import { noopTarget } from './noop-target.ts'

/** The messages of the worker's process. The first one says that it is up. */
export interface WorkerMessage {
  /** Runs settled so far. */
  readonly settled: number
  /** When its target was called for the first time; null until then. */
  readonly firstAt: number | null
  readonly at: number
  readonly failure: string | null
}

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
  // One message for everything that one commit settled.
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
