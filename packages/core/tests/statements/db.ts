import { lockFreeSchedules, lockSchedules } from '../../src/db/locks.ts'
import { dropPartitions, ensurePartitions, listPartitions } from '../../src/db/months.ts'
import { linesInsert } from '../../src/db/new-lines.ts'
import { notifyCancel, notifyDue, notifyDueRun } from '../../src/db/notify.ts'
import { readCurrentTime, readTransactionTime } from '../../src/db/now.ts'
import { insertChanges } from '../../src/db/schedule-changes.ts'
import { readActingUser, readPostgresInfo } from '../../src/db/server.ts'
import { transactNarrowed, waitUntil } from '../../src/db/transact.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { answering, type Samples } from './describe.ts'
import { AT, BY, DATE, ID, IDS, NEW_LINE, NOW, SCHEDULE_IDS } from './sample-values.ts'

const LINES = { lines: [NEW_LINE], workerId: ID, ...NOW }
const PARTITIONS = [{ parent: 'runs', name: 'runs_2025_01' }]

export const samples: Samples = [
  (db) => lockSchedules(db, SCHEDULE_IDS),
  (db) => lockFreeSchedules(db, SCHEDULE_IDS),

  (db) => listPartitions(db),
  (db) => ensurePartitions(db, { from: DATE, to: DATE }),
  (db) => dropPartitions(answering(db, PARTITIONS), { before: DATE }),

  (db) => linesInsert({ ...LINES, onConflict: 'refuse' }).execute(db),
  (db) => linesInsert({ ...LINES, onConflict: 'keep' }).execute(db),

  (db) => notifyDue(db, { lanes: ['test.0'] }),
  (db) => notifyDueRun(db, { runId: ID }),
  (db) => notifyCancel(db, { runIds: IDS }),

  (db) => readTransactionTime(db, null),
  (db) => readCurrentTime(db, null),
  (db) => insertChanges(db, { ...SCHEDULE_IDS, change: 'edited', reason: null, ...BY }),
  (db) => readPostgresInfo(db, NOW),
  (db) => readActingUser(db),
  (db) => waitUntil(db, AT),
  (db) => transactNarrowed(db, systemClock, { tenantId: 'acme', projectId: 'web' }, async () => {}),
]
