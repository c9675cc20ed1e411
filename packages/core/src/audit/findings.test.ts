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

test('a report lists a fault once even if more faults are reported than are remembered', () => {
  const reported = new Set(Array.from({ length: 10_000 }, (_, slot) => `slot_unknown s ${slot}`))
  const report = new AuditReport(0, reported)
  const twice = { ...FINDING, kind: 'run_stuck', scheduleId: 's', scheduledFor: 1, isRepaired: false } as const

  report.add({ counts: NO_COUNTS, findings: [twice] })
  report.add({ counts: NO_COUNTS, findings: [twice] })

  expect(report.kept).toEqual([twice])
  expect(report.total).toBe(1)
})

test('a report counts the unrepaired findings that are not among given faults', () => {
  const report = new AuditReport(0, new Set())
  const stuck = { ...FINDING, kind: 'run_stuck', scheduleId: 's', isRepaired: false } as const
  const repaired = { ...FINDING, kind: 'count_wrong', scheduleId: 's', isRepaired: true } as const

  report.add({ counts: NO_COUNTS, findings: [{ ...stuck, scheduledFor: 1 }, { ...stuck, scheduledFor: 2 }, repaired] })

  expect(report.countUnrepaired(new Set(['run_stuck s 1', 'count_wrong s ']))).toBe(1)
})
