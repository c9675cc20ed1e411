/** A worker in its own process. It reports to the bench when it is ready, and how many runs it has settled. */
import { nowMs } from '../clock.ts'
import { startCarillon } from './carillon-worker.ts'
import { argumentOf, endWithBench, tell } from './channel.ts'
import { noopTarget } from './noop-target.ts'

/** A message of the worker's process. The first one reports that it is ready. */
export interface WorkerMessage {
  /** The number of runs settled so far. */
  readonly settled: number
  /** When its target was called for the first time. Null before that. */
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
  // One message for all runs that one commit has settled.
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
