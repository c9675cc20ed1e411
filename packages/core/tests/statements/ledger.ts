import * as backlogs from '../../src/ledger/store/backlogs.ts'
import * as completions from '../../src/ledger/store/completions.ts'
import * as openRuns from '../../src/ledger/store/open-runs.ts'
import * as runs from '../../src/ledger/store/runs.ts'
import { listTranscriptLines } from '../../src/ledger/store/transcripts.ts'
import type { Samples } from './describe.ts'
import { AT, BY, ID, IDS, LIMIT, NOW, SCHEDULE_IDS, SCOPE } from './sample-values.ts'

const KEY = { scheduleId: ID, revision: 1, until: AT }
const BACKLOG = { ...SCOPE, ...KEY, nextSlotAt: AT, reason: 'missed', excludedSlots: [AT], cadence: null } as const
const OF_SCHEDULE = { ...SCOPE, scheduleId: ID, scheduledFor: AT }

export const samples: Samples = [
  (db) => backlogs.insertBacklogs(db, { backlogs: [BACKLOG], ...NOW }),
  (db) => backlogs.listBacklogs(db, { scheduleIds: null, after: null, ...LIMIT }),
  (db) => backlogs.listBacklogs(db, { ...SCHEDULE_IDS, after: KEY, ...LIMIT }),
  (db) => backlogs.ageOfOldestBacklog(db, NOW),
  (db) => backlogs.moveBacklogs(db, { moves: [{ backlog: BACKLOG, next: AT }] }),

  (db) => openRuns.endWaitingRuns(db, { runIds: IDS, end: 'superseded', ...NOW }),
  (db) => openRuns.skipWaitingSlots(db, { ...SCHEDULE_IDS, ...NOW }),
  (db) => openRuns.endTurnWait(db, { ...SCHEDULE_IDS, ...NOW }),
  (db) => openRuns.findSettleFacts(db, { ...SCHEDULE_IDS, ...NOW }),
  (db) => openRuns.lockRuns(db, { ...SCHEDULE_IDS, runIds: IDS }),

  (db) => completions.storeCompletion(db, { runId: ID, attempt: 1, completion: '{}', ...NOW }),
  (db) => completions.findCompletedRun(db, { runId: ID, attempt: 1 }),
  (db) => completions.extendDeadline(db, { runId: ID, deadlineMs: 1, everyMs: 1, ...NOW }),
  (db) => completions.readCallbackKey(db),
  (db) => completions.isCallback(db, { ...SCOPE, runId: ID, mac: Buffer.alloc(32) }),
  (db) => completions.findTargetOfRun(db, { runId: ID }),

  (db) => openRuns.requireLockedSettlement(db, { scheduleId: ID }),
  (db) => openRuns.requestCancel(db, { runIds: IDS, ...BY }),
  (db) => openRuns.findCancelRequests(db, { workerId: ID }),

  (db) => runs.findRun(db, { ...SCOPE, id: ID }),
  (db) => runs.listRuns(db, { ...OF_SCHEDULE, before: null, ...LIMIT }),
  (db) => runs.listOpenRuns(db, SCHEDULE_IDS),
  (db) => runs.listAttempts(db, OF_SCHEDULE),
  (db) => listTranscriptLines(db, { ...OF_SCHEDULE, after: { token: 0, seq: 0 }, ...LIMIT }),
  (db) => runs.listChanges(db, { ...OF_SCHEDULE, before: null, ...LIMIT }),
]
