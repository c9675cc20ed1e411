import { expect, test } from 'vitest'

import { AuditReport, NO_COUNTS } from './findings.ts'

const FINDING = { scheduleId: null, scheduledFor: null, detail: 'x' }

test('a report counts every finding and keeps the first ones', () => {
  const report = new AuditReport(0, new Set(), 2)
  report.add({
    counts: NO_COUNTS,
    findings: [
      { ...FINDING, kind: 'slot_lost', isRepaired: true },
      { ...FINDING, kind: 'count_wrong', isRepaired: false },
      { ...FINDING, kind: 'slot_lost', isRepaired: true },
    ],
  })

  expect(report.total).toBe(3)
  expect(report.repaired).toBe(2)
  expect(report.toCounts(false).findings).toMatchObject({ slot_lost: 2, count_wrong: 1, slot_unknown: 0 })
  expect(report.kept.map(({ kind }) => kind)).toEqual(['slot_lost', 'count_wrong'])
})

test('a report leaves out faults that are reported already, and does not change the given set', () => {
  const reported = new Set(['slot_lost s 1'])
  const report = new AuditReport(0, reported)
  const lost = { ...FINDING, kind: 'slot_lost', scheduleId: 's', isRepaired: false } as const
  report.add({
    counts: { ...NO_COUNTS, slots: 2 },
    findings: [
      { ...lost, scheduledFor: 1 },
      { ...lost, scheduledFor: 2 },
    ],
  })

  expect(report.kept).toEqual([{ ...lost, scheduledFor: 2 }])
  expect([...report.reported]).toEqual(['slot_lost s 1', 'slot_lost s 2'])
  expect(reported.size).toBe(1)
  expect(report.compared.slots).toBe(2)
})
