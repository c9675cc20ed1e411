import type { RunWait } from '@carillon/api'

import { CadenceCache } from '../src/cadences/cadence-cache.ts'
import type { Db, Tx } from '../src/db/database.ts'
import type { HeldRun } from '../src/ledger/held-run.ts'
import { beginBatch, type BegunBatch } from '../src/pipeline/begin.ts'
import { takeDue } from '../src/pipeline/store/take.ts'
import { lanesOf } from '../src/policy/lane-names.ts'
import { DAY, type Pipeline, type TestWorker } from './pipeline.ts'
import { NO_HOOKS } from './run-fence.ts'
import { sql } from './sql.ts'

/** A waiting run, as stored in its row. */
export interface Wait {
  readonly scheduleId: string
  readonly slot: number
  readonly waitsFor: RunWait
  /** The instant from which a worker may take it; null while another run of its schedule must end first. */
  readonly dueAt: number | null
}

/** Lists all waiting runs, earliest slot first. */
export async function listWaits({ db }: Pick<Pipeline, 'db'>): Promise<Wait[]> {
  const { rows } = await sql<{ schedule_id: string; scheduled_for: Date; waits_for: RunWait; due_at: Date | null }>`
    select schedule_id, scheduled_for, waits_for, nullif(due_at, 'infinity') as due_at
    from carillon.runs
    where due_at is not null
    order by scheduled_for, schedule_id`.execute(db)
  return rows.map((row) => ({
    scheduleId: row.schedule_id,
    slot: row.scheduled_for.getTime(),
    waitsFor: row.waits_for,
    dueAt: row.due_at?.getTime() ?? null,
  }))
}

/** Takes all due runs in the name of a worker, which does not start them, as if the answer to its statement had been lost. */
export async function takeAs(
  { workerDb, clock }: Pick<Pipeline, 'clock'> & { readonly workerDb: Db | Tx },
  worker: Pick<TestWorker, 'lease'>,
): Promise<readonly HeldRun[]> {
  const asked = { lanes: LANES, perLane: 100, workerId: workerIdOf(worker), now: clock.databaseNow() }
  return (await takeDue(workerDb, asked)).runs
}

/** Begins all due slots in the name of a worker, which does not start their runs. Takes no waiting run. */
export async function beginSlotsAs({ workerDb: db, clock }: Pipeline, worker: TestWorker): Promise<BegunBatch> {
  const deps = { db, clock, cadences: new CadenceCache(), retentionMs: 90 * DAY, hooks: NO_HOOKS }
  const claim = { lanes: LANES, perLane: 100, workerId: workerIdOf(worker), slotAt: null, hookedKind: null }
  return beginBatch(deps, claim)
}

const LANES = lanesOf(['test']).map((lane) => ({ lane, after: undefined }))

function workerIdOf({ lease: { workerId } }: Pick<TestWorker, 'lease'>): string {
  if (workerId === undefined) throw new Error('this worker holds no lease')
  return workerId
}
