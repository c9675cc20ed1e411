import { Worker, type Target } from '@carillon/core'

/** So many runs at a time: more than a batch of each of its steps. */
export const CONCURRENCY = 4000

/** A worker that is up, and in which nothing may fail. */
export interface CarillonWorker extends AsyncDisposable {
  readonly events: Worker['events']
  /** Rejects when a service of the worker, a run or its lease failed. */
  readonly failed: Promise<never>
}

interface CarillonWorkerOptions {
  /** Whether a failed attempt that is tried again is part of the work. @default false */
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

/** What a worker only reports, because it tries again, is a failure here: what it did meanwhile was not measured. */
function failureOf(events: Worker['events'], isRetryExpected: boolean): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  // It may come when nobody waits for it any more.
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
