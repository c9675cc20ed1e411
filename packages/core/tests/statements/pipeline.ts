import { systemClock } from '../../src/kernel/clock.ts'
import type { SingleRunPlan } from '../../src/pipeline/begin-plan.ts'
import { settlementOf } from '../../src/pipeline/settlement.ts'
import { advanceSchedules, advanceSingleRuns, findWritten } from '../../src/pipeline/store/begin.ts'
import { claimDue, readClaimed } from '../../src/pipeline/store/claim.ts'
import * as detached from '../../src/pipeline/store/detached-runs.ts'
import * as effects from '../../src/pipeline/store/effects.ts'
import * as inDoubt from '../../src/pipeline/store/in-doubt-runs.ts'
import { lookAhead } from '../../src/pipeline/store/look.ts'
import { settleSuccesses } from '../../src/pipeline/store/settle-successes.ts'
import { settleRuns } from '../../src/pipeline/store/settle.ts'
import { takeAdmitted, takeDue, takeWaiting } from '../../src/pipeline/store/take.ts'
import { findEarlierTotals, insertTranscripts } from '../../src/pipeline/store/transcripts.ts'
import * as workers from '../../src/pipeline/store/workers.ts'
import { FENCE } from '../run-fence.ts'
import type { DescribedDb, Samples } from './describe.ts'
import { AT, DATE, ID, IDS, LIMIT, NEW_LINE, NOW } from './sample-values.ts'

const WORKER = { id: ID, workerId: ID, name: 'worker', targetKinds: ['test'], leaseMs: 1, ...NOW }
const LANES = [{ lane: 'test.0', after: undefined }]
const CLAIM = { lanes: LANES, perLane: 1, workerId: ID, ...NOW }
const RUN = { ...FENCE, runId: ID, scheduleId: ID, scheduledFor: AT, workerId: ID }
const RETRY = { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 }
const SETTLEMENT = settlementOf(RUN, { kind: 'succeeded', result: {} }, { retry: RETRY, mayFree: false })
const BATCH = { settlements: [SETTLEMENT], autoPauseReason: 'auto:failures', ...NOW }
const PART = {
  run: { scheduleId: ID, scheduledFor: AT, token: 2, attempt: 1 },
  lines: [{ seq: 1, entry: '{"kind":"text"}', ageMs: 1 }],
}
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
  (db) => takeAdmitted({ db, clock: systemClock }, CLAIM, () => Promise.resolve()),

  (db) => detached.findDueDetached(db, { lanes: ['test~0'], ...LIMIT, ...NOW }),
  (db) => detached.findNextDetached(db, { lanes: ['test~0'], withinMs: 1, ...NOW }),

  (db) => effects.findActive(db, { scheduleIds: IDS }),
  (db) => effects.completeSchedules(db, { scheduleIds: IDS }),
  (db) => effects.pauseSchedules(db, { scheduleIds: IDS, reason: 'auto:test', ...NOW }),

  (db) => insertTranscripts(db, { parts: [PART], ...NOW }),
  (db) => findEarlierTotals(db, { runs: [PART.run] }),

  (db) => workers.registerWorker(db, WORKER),
  (db) => workers.extendLease(db, { ...WORKER, failing: null, fullMsAgo: 1 }),
  (db) => workers.endLease(db, WORKER),
  (db) => workers.listWorkers(db, NOW),
  (db) => workers.findDeadWorkers(db, NOW),
  (db) => workers.removeDeadWorkers(db, { ids: IDS, ...NOW }),
  (db) => workers.findOrphanedRuns(db, { workerIds: IDS, targetKinds: ['test'], ...LIMIT, ...NOW }),
  (db) => workers.findOrphanedRuns(db, { workerIds: null, targetKinds: ['test'], ...LIMIT, ...NOW }),
]

/** The begin of one run of a claimed schedule. */
async function planOf(db: DescribedDb): Promise<SingleRunPlan> {
  const [schedule] = await readClaimed(db, await claimDue(db, CLAIM))
  if (schedule === undefined) throw new Error('expected a claimed schedule, got none')
  const counts = { consecutiveFailures: 0, runCount: 1, failureCount: 0 }
  const due = { state: 'active', nextSlotAt: AT, dueAt: AT, excludedSlots: [], pausedReason: null } as const
  return { schedule, lines: [NEW_LINE], supersede: [], cancel: [], isLastRun: false, ...due, ...counts }
}
