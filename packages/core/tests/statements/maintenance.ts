import { countSchedules, countWork } from '../../src/maintenance/store/gauges.ts'
import * as moduleRows from '../../src/maintenance/store/module-rows.ts'
import * as purge from '../../src/maintenance/store/purge.ts'
import * as upkeep from '../../src/maintenance/store/upkeep.ts'
import type { Samples } from './describe.ts'
import { DATE, FIRST_PAGE, ID, LIMIT, NOW, SCHEDULE_IDS, SCOPE } from './sample-values.ts'

const ROWS = { ...SCOPE, ...LIMIT }
const PORTION = { ...ROWS, scheduleId: ID }

export const samples: Samples = [
  (db) => countSchedules(db),
  (db) => countWork(db, NOW),

  (db) => purge.findPurgeObstacles(db, SCOPE),
  (db) => purge.countScheduleRows(db, { ...SCOPE, ...FIRST_PAGE }),
  (db) => purge.countProjectRows(db, SCOPE),
  (db) => purge.lockRemovable(db, { ...ROWS, rowsMax: 1 }),
  (db) => purge.deleteWhole(db, { ...SCOPE, ...SCHEDULE_IDS }),
  (db) => purge.deleteRevisions(db, PORTION),
  (db) => purge.deleteBacklogs(db, PORTION),
  (db) => purge.deleteChanges(db, PORTION),
  (db) => purge.deleteAttempts(db, PORTION),
  (db) => purge.deleteTranscripts(db, PORTION),
  (db) => purge.deleteRuns(db, PORTION),
  (db) => purge.deleteGrants(db, ROWS),
  (db) => purge.deleteSecrets(db, ROWS),
  (db) => purge.deleteMembers(db, ROWS),
  (db) => purge.deleteIdempotentAnswers(db, ROWS),

  (db) => moduleRows.listModuleTables(db),
  // Any table with a tenant and a project stands for that of a module.
  (db) => moduleRows.countModuleRows(db, { ...SCOPE, table: 'members' }),
  (db) => moduleRows.deleteModuleRows(db, { ...ROWS, table: 'members' }),

  (db) => upkeep.findOldestDue(db),
  (db) => upkeep.deleteRunChanges(db, { before: DATE, ...LIMIT }),
  (db) => upkeep.lockExpiredSchedules(db, { deletedBefore: DATE, ...LIMIT }),
  (db) => upkeep.deleteChangesOf(db, { ...SCHEDULE_IDS, ...LIMIT }),
  (db) => upkeep.deleteRevisionsOf(db, { ...SCHEDULE_IDS, ...LIMIT }),
  (db) => upkeep.deleteBacklogsOf(db, { ...SCHEDULE_IDS, ...LIMIT }),
  (db) => upkeep.deleteOwnGrantsOf(db, { ...SCHEDULE_IDS, ...LIMIT }),
  (db) => upkeep.deleteSchedules(db, SCHEDULE_IDS),
]
