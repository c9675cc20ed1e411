import { createPostgresBackend, type Job, Queue, runMigrations, Worker } from 'bullmq'
import { Pool } from 'pg'

import type { Peer } from '../measure.ts'
import { worksOn, type Slot } from './bullmq.ts'
import { CONNECTIONS } from './in-turn.ts'
import { versionOf } from './package-version.ts'

const CONCURRENCY = 20
const WORKER_CONNECTIONS = 10

export const bullmqPostgres: Peer = {
  name: 'BullMQ on Postgres',
  version: versionOf('bullmq'),
  rounds: 1,
  leaves: 'the completed job, which BullMQ keeps, and the next job of its scheduler',
  setUp: `one worker with concurrency ${CONCURRENCY} on ${WORKER_CONNECTIONS} connections, ${CONNECTIONS} for who creates; Postgres at its default durability`,
  ...worksOn({
    async prepare(ground) {
      const pool = new Pool({ connectionString: ground.postgresUrl, max: 1 })
      const client = await pool.connect()
      try {
        await runMigrations(client)
      } finally {
        client.release()
        await pool.end()
      }
    },
    openQueue: (ground, name) =>
      new Queue(
        name,
        { connection: { connectionString: ground.postgresUrl, max: CONNECTIONS } },
        createPostgresBackend,
      ),
    openWorker: (ground, name, process) =>
      new Worker(
        name,
        (job: Job<Slot>) => {
          process(job.data)
          return Promise.resolve()
        },
        { connection: { connectionString: ground.postgresUrl, max: WORKER_CONNECTIONS }, concurrency: CONCURRENCY },
        createPostgresBackend,
      ),
  }),
}
