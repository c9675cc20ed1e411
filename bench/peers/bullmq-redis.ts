import { Queue, Worker } from 'bullmq'

import type { Ground, Peer } from '../measure.ts'
import { worksOn, type Slot } from './bullmq.ts'
import { versionOf } from './package-version.ts'

/** The fastest concurrency for a drain among 50, 100, 300 and 1,000. */
const CONCURRENCY = 100

function connectionOf(ground: Ground): { url: string; maxRetriesPerRequest: null } {
  if (ground.redisUrl === undefined) throw new Error('expected a Redis, got none: install redis-server')
  return { url: ground.redisUrl, maxRetriesPerRequest: null }
}

export const bullmqRedis: Peer = {
  name: 'BullMQ on Redis',
  version: versionOf('bullmq'),
  leaves: 'the completed job, which BullMQ keeps, and the next job of its scheduler',
  setUp: `one worker with concurrency ${CONCURRENCY}; Redis with its log synced once a second and no eviction, as BullMQ's guide for production says; the log is never rewritten, which would fork the server`,
  ...worksOn({
    prepare: () => Promise.resolve(),
    openQueue: (ground, name) => new Queue(name, { connection: connectionOf(ground) }),
    openWorker: (ground, name, process) =>
      new Worker<Slot>(
        name,
        (job) => {
          process(job.data)
          return Promise.resolve()
        },
        { connection: connectionOf(ground), concurrency: CONCURRENCY },
      ),
  }),
}
