import type { EventEmitter } from 'node:events'

import { createDb, createPool, Scheduler, type ScheduleInput } from '@carillon/core'

import { dailyCron } from '../peers/due.ts'
import { NOOP, noopTarget } from './noop-target.ts'

export const CALLER = { tenantId: 'default', projectId: 'default', subject: 'user:bench' }
const WITHOUT_QUOTAS = { maxSchedulesPerProject: null, maxSchedulesPerUser: null }

export interface OpenScheduler extends AsyncDisposable {
  readonly scheduler: Scheduler
  /** Calls the listener whenever Postgres has answered a commit. */
  onCommit(listener: () => void): void
}

/** The library as a program uses it, with one connection for each client. */
export function openScheduler(url: string, connections: number): OpenScheduler {
  const pool = createPool({ connectionString: url, maxConnections: connections, isPrepared: true })
  const db = createDb(pool)
  const target = noopTarget()
  const scheduler = new Scheduler({ db, targets: new Map([[target.kind, target]]) }, WITHOUT_QUOTAS)
  return {
    scheduler,
    onCommit: (listener) => {
      pool.on('connect', (client) => {
        // pg's types lack this: a client's connection, which emits the replies of Postgres.
        const { connection } = client as unknown as {
          connection: EventEmitter<{ commandComplete: [{ text: string }] }>
        }
        connection.on('commandComplete', ({ text }) => {
          if (text === 'COMMIT') listener()
        })
      })
    },
    [Symbol.asyncDispose]: () => pool.end(),
  }
}

/** A schedule that is due once a day. */
export function dailyInput(n: number): ScheduleInput {
  return {
    name: `schedule ${n}`,
    cadence: { kind: 'cron', expression: dailyCron(n), timezone: 'UTC' },
    target: { kind: NOOP },
  }
}
