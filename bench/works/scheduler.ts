import { createDb, createPool, Scheduler, type ScheduleInput } from '@carillon/core'

import { dailyCron } from '../peers/due.ts'
import { NOOP, noopTarget } from './noop-target.ts'

export const CALLER = { tenantId: 'default', projectId: 'default', subject: 'user:bench' }
const WITHOUT_QUOTAS = { maxSchedulesPerProject: null, maxSchedulesPerUser: null }

export interface OpenScheduler extends AsyncDisposable {
  readonly scheduler: Scheduler
}

/** The library as a program has it, with as many connections as it has clients. */
export function openScheduler(url: string, connections: number): OpenScheduler {
  const db = createDb(createPool({ connectionString: url, maxConnections: connections, isPrepared: true }))
  const target = noopTarget()
  const scheduler = new Scheduler({ db, targets: new Map([[target.kind, target]]) }, WITHOUT_QUOTAS)
  return { scheduler, [Symbol.asyncDispose]: () => db.destroy() }
}

/** Due once a day. */
export function dailyInput(n: number): ScheduleInput {
  return {
    name: `schedule ${n}`,
    cadence: { kind: 'cron', expression: dailyCron(n), timezone: 'UTC' },
    target: { kind: NOOP },
  }
}
