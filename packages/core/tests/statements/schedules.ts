import * as answers from '../../src/schedules/store/answers.ts'
import { insertSchedules } from '../../src/schedules/store/new-schedules.ts'
import * as writes from '../../src/schedules/store/schedule-writes.ts'
import { findSchedule, listSchedules, lockProject, lockSchedule } from '../../src/schedules/store/schedules.ts'
import type { Samples } from './describe.ts'
import { ACTOR, AT, BY, BYTES, DATE, FIRST_PAGE, ID, IDS, LIMIT, NOW, SCOPE } from './sample-values.ts'

const KEY = { ...SCOPE, ...NOW, subject: ACTOR, key: 'key', requestHash: BYTES, scheduleId: ID, answer: {} }
const DUE = { nextSlotAt: AT, dueAt: AT }
const NEW_SCHEDULE = {
  ...DUE,
  id: ID,
  ownerSubject: ACTOR,
  targetKind: 'test',
  grantId: ID,
  isGrantOwn: true,
  autoPauseThreshold: 3,
  name: 'nightly',
  cadenceKind: 'once',
  cadence: '{}',
  target: '{}',
  policy: '{}',
  requiredScope: 'test',
} as const
const REVISION = {
  ...BY,
  ...DUE,
  id: ID,
  state: 'active',
  name: 'nightly',
  cadence: { kind: 'cron', expression: '* * * * *', timezone: 'UTC' },
  target: { kind: 'test' },
  policy: {
    overlap: 'forbid',
    missed: 'skip',
    startingDeadlineSeconds: 1,
    retry: { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 },
    autoPauseThreshold: 3,
    spreadSeconds: 0,
  },
  grant: { id: ID, own: null },
  requiredScope: 'test',
} as const
const OWN_GRANT = { id: ID, own: { scopes: ['test'], expiresAt: AT } }
const PAGE = { ...SCOPE, ...FIRST_PAGE, state: null, targetKind: null, nameContains: null }

export const samples: Samples = [
  (db) => answers.tryLockKey(db, KEY),
  (db) => answers.findAnswer(db, KEY),
  (db) => answers.saveAnswer(db, KEY),
  (db) => answers.deleteAnswers(db, { before: DATE, ...LIMIT }),

  (db) => insertSchedules(db, { ...SCOPE, ...BY, schedules: [NEW_SCHEDULE] }),
  (db) => insertSchedules(db, { ...SCOPE, ...BY, schedules: [NEW_SCHEDULE, NEW_SCHEDULE] }),

  (db) => writes.reviseSchedule(db, REVISION),
  (db) => writes.reviseSchedule(db, { ...REVISION, grant: OWN_GRANT }),
  (db) => writes.pauseSchedule(db, { ...BY, id: ID, reason: 'maintenance' }),
  (db) => writes.completeSchedule(db, { id: ID }),
  (db) => writes.resumeSchedule(db, { ...BY, ...DUE, id: ID }),
  (db) => writes.deleteSchedules(db, { ...BY, ids: IDS }),
  (db) => writes.countManualRun(db, { id: ID, failed: 1, untried: 1 }),
  (db) => writes.uncountUntried(db, { ended: [{ scheduleId: ID, isTried: false }] }),
  (db) => writes.setExcludedSlots(db, { id: ID, slots: [AT] }),

  (db) => findSchedule(db, { ...SCOPE, id: ID }),
  (db) => lockSchedule(db, { ...SCOPE, id: ID }),
  (db) => lockProject(db, SCOPE),
  // By the index of names.
  (db) => listSchedules(db, PAGE),
  (db) => listSchedules(db, { ...PAGE, nameContains: 'night', before: ID, state: 'active' }),
  // By row.
  (db) => listSchedules(db, { ...PAGE, state: 'paused' }),
  (db) => listSchedules(db, { ...PAGE, nameContains: 'night', before: ID, state: 'active', targetKind: 'test' }),
]
