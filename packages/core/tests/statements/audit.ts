import * as audits from '../../src/audit/store/audits.ts'
import * as comingDue from '../../src/audit/store/coming-due.ts'
import * as findings from '../../src/audit/store/findings.ts'
import { findLedgerPage } from '../../src/audit/store/ledger-pages.ts'
import { insertModuleFindings, listSeenModuleFindings } from '../../src/audit/store/module-findings.ts'
import * as openRuns from '../../src/audit/store/open-runs.ts'
import * as counts from '../../src/audit/store/schedule-counts.ts'
import { groupSlots, listSlotsOfGroup } from '../../src/audit/store/slot-groups.ts'
import * as slots from '../../src/audit/store/slots.ts'
import type { Samples } from './describe.ts'
import { AT, DATE, ID, IDS, LIMIT, NOW, SCHEDULE_IDS, SCOPE } from './sample-values.ts'

const COMPARED = { schedules: 1, slots: 1, unreadable: 0, truncated: 0, findings: 1, repaired: 1, lost: 1 }
const AUDIT = { ...COMPARED, ...NOW, id: ID, isWhole: true, from: AT, to: AT, startedAt: AT }
const FINDING = { kind: 'slot_lost', scheduleId: ID, scheduledFor: AT, detail: 'lost', isRepaired: true } as const
const WINDOW = { from: DATE, to: DATE }
const RANGE = { ids: IDS, from: AT, before: AT, legacyUntil: DATE }
const LINE = { id: ID, scheduleId: ID, scheduledFor: AT, revision: 1 }

export const samples: Samples = [
  (db) => listSeenModuleFindings(db, { details: ['x'] }),
  (db) =>
    insertModuleFindings(db, { auditId: ID, findings: [{ tenantId: null, projectId: null, detail: 'x' }], now: DATE }),
  (db) => audits.insertAudit(db, AUDIT),
  (db) => audits.findLatestAudit(db, NOW),
  (db) => audits.insertAuditRequest(db, NOW),
  (db) => audits.deleteAudits(db, { before: DATE, ...LIMIT }),

  (db) => comingDue.listComingDue(db, { after: null, until: DATE, resume: null, ...LIMIT }),
  (db) => comingDue.listChangesAfter(db, { after: '0', ...LIMIT }),
  (db) => comingDue.findLatestChange(db),

  (db) => findings.insertFindings(db, { auditId: ID, findings: [FINDING], now: DATE }),
  (db) => findings.listFindings(db, { ...SCOPE, ...LIMIT }),
  (db) => findings.listUnrepaired(db, LIMIT),
  (db) => findings.listUnownedFindings(db, LIMIT),
  (db) => findings.countFindings(db, { after: DATE, ...LIMIT, ...NOW }),

  (db) => findLedgerPage(db, { from: { scheduleId: ID, slot: AT }, schedules: 1, lines: 1 }),

  (db) => openRuns.listUnattendedRuns(db, { ids: IDS, before: DATE }),
  (db) => openRuns.listRunsWithoutSchedule(db, { from: { scheduleId: ID, slot: AT }, ...LIMIT }),
  (db) => openRuns.listLiveWorkers(db, NOW),
  (db) => openRuns.findFirstDue(db, { lanes: ['test.0'] }),

  (db) => counts.listAuditedCounts(db, { ids: IDS }),
  (db) => counts.listAuditedFailures(db, { ids: IDS }),
  (db) => counts.correctCounts(db, { id: ID, runCount: 1, failureCount: 1, consecutiveFailures: 1 }),

  (db) => groupSlots(db, RANGE),
  (db) => listSlotsOfGroup(db, { ...RANGE, signature: '[]', ...LIMIT }),

  (db) => slots.listAuditedSchedules(db, { ids: IDS, ...WINDOW }),
  (db) => slots.listAuditedLines(db, { ...SCHEDULE_IDS, ...WINDOW, ...LIMIT }),
  (db) => slots.listBacklogRanges(db, { ...SCHEDULE_IDS, madeAfter: DATE }),
  (db) => slots.restoreLines(db, { lines: [LINE], ...NOW }),
]
