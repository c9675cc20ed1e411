import type { Meter } from '@opentelemetry/api'

import type { Db, Tx } from '../db/database.ts'
import { transactNarrowed, transactScoped } from '../db/transact.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import { completeRun, extendRun, Runs } from '../ledger/completions.ts'
import type { ModuleDeps } from '../ports/module.ts'
import type { OutboundClient } from '../ports/outbound.ts'
import type { RunsPort } from '../ports/runs.ts'
import type { SecretStore } from '../ports/secret-store.ts'

/** What all modules of a process are made of, besides their settings and each other's ports. */
export interface SharedDeps {
  readonly of: (module: string) => Omit<ModuleDeps, 'settings' | 'use' | 'useIfThere'>
}

interface ProcessParts {
  readonly clock: Clock
  readonly events: Events
  readonly meter: Meter
  readonly secrets: SecretStore
  readonly outbound: OutboundClient
}

/** The connections of a process that serves the API, of a worker, or of a process that is both. */
export type ModuleDbs =
  | { readonly api: Db; readonly worker?: Db }
  /** Acts as the role of workers. */
  | { readonly api?: Db; readonly worker: Db }

/** What modules get in a process. Where there is an API, `transact` acts as its role, also beside a worker. */
export function sharedDeps({ api, worker }: ModuleDbs, { clock, ...rest }: ProcessParts): SharedDeps {
  const transact: ModuleDeps['transact'] = (scope, work) => {
    if (api !== undefined) return transactScoped(api, clock, scope, work)
    return worker === undefined ? Promise.reject(new Error(NO_DB)) : transactNarrowed(worker, clock, scope, work)
  }
  return {
    of: (module) => {
      const by = `module:${module}`
      const runs = worker === undefined ? scopedRuns(clock, by) : new Runs({ db: worker, clock, by })
      return { ...rest, clock, db: worker, runs, transact }
    },
  }
}

const NO_DB = 'expected connections of the API or of a worker, got none'

/** The API sees the rows of one project at a time, so a transaction must say which. */
function scopedRuns(clock: Clock, by: string): RunsPort {
  const within = <Result>(tx: Tx | null, work: (tx: Tx) => Promise<Result>): Promise<Result> =>
    tx === null ? Promise.reject(new Error(NO_SCOPE)) : work(tx)
  return {
    complete: (tx, attempt, completion) =>
      within(tx, (open) => completeRun(open, attempt, completion, { by, now: clock.databaseNow() })),
    heartbeat: (tx, run, deadlineMs) => within(tx, (open) => extendRun(open, run, deadlineMs, clock.databaseNow())),
  }
}

const NO_SCOPE = 'expected a transaction of `transact`, because this is a server, got null'
