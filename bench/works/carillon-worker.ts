import { Worker, type Target } from '@carillon/core'

/** The worker's concurrency. It is larger than one batch of each step. */
export const CONCURRENCY = 4000

/** A started worker in which any failure fails the measurement. */
export interface CarillonWorker extends AsyncDisposable {
  readonly events: Worker['events']
  /** Rejects when a service of the worker, a run or its lease failed. */
  readonly failed: Promise<never>
}

interface CarillonWorkerOptions {
  /** True if retries of failed attempts are part of the work. @default false */
  readonly isRetryExpected?: boolean
}

export async function startCarillon(
  url: string,
  target: Target,
  { isRetryExpected = false }: CarillonWorkerOptions = {},
): Promise<CarillonWorker> {
  const worker = new Worker({ databaseUrl: url, targets: [target], concurrency: CONCURRENCY })
  const failed = failureOf(worker.events, isRetryExpected)
  await worker.start()
  return { events: worker.events, failed, [Symbol.asyncDispose]: () => worker.stop() }
}

/** A worker reports an error and tries again. The bench treats it as a failure, because the figure would include the retry. */
function failureOf(events: Worker['events'], isRetryExpected: boolean): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  // The rejection may come after the last await.
  promise.catch(() => undefined)
  events.on('service.failed', ({ service, error }) => {
    reject(new Error(`the worker's ${service} failed: ${error instanceof Error ? error.message : String(error)}`))
  })
  events.on('lease.lost', () => {
    reject(new Error('expected the worker to keep its lease, got it lost'))
  })
  events.on('attempt.settled', ({ state }) => {
    if (state === 'succeeded' || (isRetryExpected && state === 'retrying')) return
    reject(new Error(`expected every run to succeed, got one that is ${state}`))
  })
  events.on('slot.skipped', ({ reason }) => {
    reject(new Error(`expected every slot to run, got one skipped: ${reason}`))
  })
  return promise
}
