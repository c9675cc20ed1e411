import { systemClock } from '../../src/kernel/clock.ts'
import type { SingleRunPlan } from '../../src/pipeline/begin-plan.ts'
import { advanceSchedules, advanceSingleRuns, findWritten } from '../../src/pipeline/store/begin.ts'
import { claimDue, readClaimed } from '../../src/pipeline/store/claim.ts'
import * as inDoubt from '../../src/pipeline/store/in-doubt-runs.ts'
import { lookAhead } from '../../src/pipeline/store/look.ts'
import { settleSuccesses } from '../../src/pipeline/store/settle-successes.ts'
import { settleRuns, type Settlement } from '../../src/pipeline/store/settle.ts'
import { takeDue, takeWaiting } from '../../src/pipeline/store/take.ts'
import * as workers from '../../src/pipeline/store/workers.ts'
import type { DescribedDb, Samples } from './describe.ts'
import { AT, DATE, ID, IDS, LIMIT, NEW_LINE, NOW } from './sample-values.ts'

const WORKER = { id: ID, workerId: ID, name: 'worker', targetKinds: ['test'], leaseMs: 1, ...NOW }
const LANES = [{ lane: 'test.0', after: undefined }]
const CLAIM = { lanes: LANES, perLane: 1, workerId: ID, ...NOW }
const SETTLEMENT: Settlement = {
  scheduleId: ID,
  scheduledFor: AT,
  workerId: ID,
  token: 1,
  targetKind: 'test',
  state: 'succeeded',
  reason: null,
  outcome: 'succeeded',
  waitsFor: null,
  dueInMs: null,
  error: null,
  result: '{}',
  mayFree: false,
}
const BATCH = { settlements: [SETTLEMENT], autoPauseReason: 'auto:failures', ...NOW }
const BEGIN = { workerId: ID, notBefore: null, ...NOW }

export const samples: Samples = [
  async (db) => advanceSchedules(db, { ...BEGIN, plans: [await planOf(db)], onConflict: 'refuse' }),
  async (db) => advanceSchedules(db, { ...BEGIN, plans: [await planOf(db)], onConflict: 'keep' }),
  async (db) => advanceSingleRuns(db, { ...BEGIN, plans: [await planOf(db)] }),
  (db) => findWritten(db, { lines: [NEW_LINE] }),
  (db) => claimDue(db, { ...CLAIM, now: DATE, isAhead: true }),

  (db) => inDoubt.newTransactionId(db),
  (db) => inDoubt.areEarlierOver(db, { transactionId: '1' }),
  (db) => inDoubt.findRunningRuns(db, { ...WORKER, ...LIMIT }),

  (db) => lookAhead(db, { slots: LANES, runs: LANES, horizonMs: 1, ...NOW }),
  (db) => settleSuccesses(db, { ...BATCH, workerId: ID }),
  (db) => settleRuns(db, { ...BATCH, onConflict: 'refuse' }),
  (db) => settleRuns(db, { ...BATCH, onConflict: 'keep' }),
  (db) => takeWaiting({ db, clock: systemClock }, CLAIM),
  (db) => takeDue(db, CLAIM),

  (db) => workers.registerWorker(db, WORKER),
  (db) => workers.extendLease(db, { ...WORKER, failing: null, fullMsAgo: 1 }),
  (db) => workers.endLease(db, WORKER),
  (db) => workers.listWorkers(db, NOW),
  (db) => workers.findDeadWorkers(db, NOW),
  (db) => workers.removeDeadWorkers(db, { ids: IDS, ...NOW }),
  (db) => workers.findOrphanedRuns(db, { workerIds: IDS, ...LIMIT, ...NOW }),
  (db) => workers.findOrphanedRuns(db, { workerIds: null, ...LIMIT, ...NOW }),
]

/** The begin of one run of a claimed schedule. */
async function planOf(db: DescribedDb): Promise<SingleRunPlan> {
  const [schedule] = await readClaimed(db, await claimDue(db, CLAIM))
  if (schedule === undefined) throw new Error('expected a claimed schedule, got none')
  const counts = { consecutiveFailures: 0, runCount: 1, failureCount: 0 }
  const due = { state: 'active', nextSlotAt: AT, dueAt: AT, excludedSlots: [], pausedReason: null } as const
  return { schedule, lines: [NEW_LINE], supersede: [], cancel: [], ...due, ...counts }
}
