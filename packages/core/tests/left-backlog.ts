import { expect } from 'vitest'

import { CadenceCache } from '../src/cadences/cadence-cache.ts'
import type { Db } from '../src/db/database.ts'
import { Events } from '../src/kernel/events.ts'
import { BacklogWriter } from '../src/ledger/backlogs.ts'
import { Scheduler } from '../src/scheduler.ts'
import { ANY_NUMBER, DAY, type Pipeline } from './pipeline.ts'
import { watchedDb } from './query-plan.ts'

/** How many lines one transaction writes at most. */
export const PORTION = 1000
export const RETENTION_MS = 90 * DAY

type ServerParts = Pick<Pipeline, 'clock' | 'targets'>

export function schedulerOn(db: Db, { clock, targets }: ServerParts, events = new Events()): Scheduler {
  return new Scheduler({ db, clock, targets, events }, ANY_NUMBER)
}

/** Makes a change with a server that dies right after the commit, so that the lines of its backlog are still to be written. */
export async function changeAndDie(
  pipeline: ServerParts & Pick<Pipeline, 'database'>,
  change: (scheduler: Scheduler) => Promise<unknown>,
): Promise<void> {
  let isLeaving = false
  let isDead = false
  const db = watchedDb(pipeline.database.pool, (query) => {
    isLeaving ||= query.text.includes('insert into slot_backlogs')
    isDead ||= isLeaving && query.text === 'commit'
    if (isDead) throw new Error('the server died')
  })
  await expect(change(schedulerOn(db, pipeline))).rejects.toThrow('the server died')
}

/** The backlog writer of a worker. By default it has the permissions of the role carillon_worker. */
export function writerOf({ workerDb, clock, events }: Pipeline, db = workerDb): BacklogWriter {
  return new BacklogWriter({ db, clock, events, cadences: new CadenceCache() }, { retentionMs: RETENTION_MS })
}

/** Runs a writer until no backlog is left. @returns how many lines it wrote */
export async function finish(writer: BacklogWriter): Promise<number> {
  for (let total = 0; ;) {
    const { lines } = await writer.runOnce()
    if (lines === 0) return total
    total += lines
  }
}
