import type { Peer } from '../measure.ts'
import { bullmqPostgres } from './bullmq-postgres.ts'
import { bullmqRedis } from './bullmq-redis.ts'
import { dbos } from './dbos.ts'
import { graphileJobs } from './graphile-jobs.ts'
import { jobPerSlot } from './job-per-slot.ts'
import { pgBoss } from './pg-boss.ts'

export const PEERS: readonly Peer[] = [bullmqRedis, bullmqPostgres, pgBoss, dbos, graphileJobs, jobPerSlot]
