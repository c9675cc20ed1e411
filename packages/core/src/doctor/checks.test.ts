import { describe, expect, test } from 'vitest'

import type { WorkerRecord } from '../pipeline/store/workers.ts'
import {
  checkAudit,
  checkDatabase,
  checkRuns,
  checkSchema,
  checkServices,
  checkSkew,
  checkTzdata,
  checkWorkers,
  type AuditFacts,
  type Check,
} from './checks.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const NOW = Date.parse('2026-03-04T12:00:00Z')
const WORKER: WorkerRecord = {
  id: '018f0000-0000-7000-8000-000000000001',
  name: 'one',
  targetKinds: ['http'],
  version: '0.1.0',
  tzdataVersion: '2026c',
  startedAt: NOW - HOUR,
  heartbeatAt: NOW,
  isAlive: true,
  failing: null,
}
const FAILURE = { failures: 5, forMs: 300_000, error: 'no' }
const FAILING = { loop: { ...FAILURE, forMs: 1000 }, upkeep: FAILURE }
const DEAD = { ...WORKER, isAlive: false }
const AUDIT = {
  id: '018f0000-0000-7000-8000-000000000002',
  isWhole: true,
  from: NOW - 30 * HOUR,
  to: NOW - 4 * HOUR,
  startedAt: NOW - 4 * HOUR,
  completedAt: NOW - 4 * HOUR,
  schedules: 10,
  slots: 240,
  unreadable: 0,
  truncated: 0,
  findings: 0,
  repaired: 0,
}
const SCHEMA = {
  applied: [{ number: 1, name: '0001_first', checksum: 'x', appliedAt: new Date(0) }],
  pending: [],
}

type Case = [what: string, check: Check, status: Check['status'], message: RegExp]

describe('the checks of the doctor report', () => {
  test.each<Case>([
    ['a server', checkDatabase(server('18.1', 180_001), 0.4), 'ok', /^Postgres 18.1 answered in 1 ms$/],
    ['a server of the oldest supported version', checkDatabase(server('15.0', 150_000), 1), 'ok', /15.0/],
    [
      'a server that is too old',
      checkDatabase(server('14.19', 140_019), 1),
      'failed',
      /expected Postgres 15 or later, got 14.19/,
    ],
    ['a slow server', checkDatabase(server('18.1', 180_001), 1001), 'warning', /answered in 1001 ms, so slots/],
    ['an unchanged schema', checkSchema(SCHEMA, drift(0, 0)), 'ok', /matches the 1 applied migration/],
    ['pending migrations', checkSchema({ ...SCHEMA, pending: ['0002_a', '0003_b'] }, null), 'failed', /0002_a, 0003_b/],
    ['a missing line of the schema', checkSchema(SCHEMA, drift(1, 0)), 'failed', /by hand.*: missing line 1$/],
    [
      'unexpected lines of the schema',
      checkSchema(SCHEMA, drift(0, 2)),
      'warning',
      /unexpected line 1; unexpected line 2$/,
    ],
    ['many differences of the schema', checkSchema(SCHEMA, drift(4, 4)), 'failed', /unexpected line 1 \(and 3 more\)$/],
    ['a clock within the tolerance', checkSkew(1000), 'ok', /1.0 s ahead of the database's$/],
    ['a clock that is behind', checkSkew(-1001), 'warning', /1.0 s behind .*so none starts early/],
    ['a clock that is ahead', checkSkew(30_000), 'warning', /30.0 s ahead/],
    ['a clock that is far off', checkSkew(-7_200_001), 'failed', /2 h behind/],
    [
      'the same time zone rules',
      checkTzdata('2026c', [WORKER]),
      'ok',
      /^time zone rules 2026c, the same in 1 living worker$/,
    ],
    [
      'a worker without a version of its time zone rules',
      checkTzdata('2026c', [{ ...WORKER, tzdataVersion: null }]),
      'ok',
      /; 1 worker with no reported version$/,
    ],
    [
      'a worker with other time zone rules',
      checkTzdata('2026c', [WORKER, { ...WORKER, name: 'two', tzdataVersion: '2025b' }]),
      'warning',
      /got 2026c here while two has 2025b: slots may be computed differently/,
    ],
    [
      'a dead worker with other time zone rules',
      checkTzdata('2026c', [{ ...DEAD, tzdataVersion: '2025b' }]),
      'ok',
      /in 0 living/,
    ],
    ['no worker and no active schedule', checkWorkers([DEAD], []), 'ok', /^0 living workers$/],
    [
      'no worker and active schedules',
      checkWorkers([DEAD], [active('http', 3)]),
      'warning',
      /no worker is alive.* of http \(3\) are active: start a worker/,
    ],
    ['a worker', checkWorkers([WORKER], [active('http', 3)]), 'ok', /^1 living worker, serving http$/],
    [
      'a target kind that no worker serves',
      checkWorkers([WORKER], [active('agent', 2), active('graph', 1), active('http', 3)]),
      'failed',
      /no living worker serves .* of agent \(2\), graph \(1\): start one/,
    ],
    ['no waiting runs', checkRuns([], [WORKER], null), 'ok', /^0 runs waiting$/],
    ['waiting runs', checkRuns([waiting('http', 3, 60_000)], [WORKER], 300_000), 'ok', /^3 runs waiting$/],
    [
      'overdue runs',
      checkRuns(
        [waiting('agent', 1, 60_001), waiting('http', 2, 600_000)],
        [{ ...WORKER, targetKinds: ['http', 'agent'] }],
        null,
      ),
      'warning',
      /^3 runs waiting; the oldest, of http, has been due for 10 min, and no worker took it: start more workers/,
    ],
    [
      'a backlog that waits for its lines',
      checkRuns([waiting('http', 3, 0)], [WORKER], 300_001),
      'warning',
      /^slots that came due before a change have waited for their lines for 5 min: start a worker if none is alive/,
    ],
    [
      'waiting runs that no worker serves',
      checkRuns([waiting('agent', 1, 0), waiting('graph', 4, 0), waiting('http', 2, 0)], [WORKER], null),
      'failed',
      /^7 runs waiting, and no living worker serves those of agent \(1\), graph \(4\): start a worker with these targets \(carillon worker --targets agent,graph\), or cancel the runs$/,
    ],
    [
      'waiting runs whose workers died',
      checkRuns([waiting('http', 1, 0)], [DEAD], null),
      'failed',
      /those of http \(1\): start a worker/,
    ],
    ['services without failures', checkServices([WORKER]), 'ok', /^no service fails$/],
    ['failing services of a dead worker', checkServices([{ ...DEAD, failing: FAILING }]), 'ok', /^no service fails$/],
    [
      'a service that has just failed',
      checkServices([{ ...WORKER, failing: { loop: { ...FAILURE, failures: 1, forMs: 250 } } }]),
      'warning',
      /^loop of one has failed 1 time in a row, for 250 ms \("no"\): it is tried again; look once more in a minute$/,
    ],
    [
      'services that keep failing',
      checkServices([{ ...WORKER, failing: FAILING }]),
      'failed',
      /^upkeep of one has failed 5 times in a row, for 5 min \("no"\); loop of one .*: do as the error says/,
    ],
    [
      'no audit of a new installation',
      checkAudit(facts({ latest: undefined, auditedUntil: null, workers: [] })),
      'ok',
      /no audit yet/,
    ],
    [
      'an audit without findings',
      checkAudit(facts({})),
      'ok',
      /of 2026-03-04T08:00:00.000Z found nothing among 240 slots, and slots up to 2 min ago are compared/,
    ],
    [
      'an audit with findings',
      checkAudit(
        facts({
          latest: { ...AUDIT, findings: 3, repaired: 1 },
          findings: [
            { kind: 'slot_lost', tenantId: 'acme', projectId: 'web', count: 2 },
            { kind: 'revision_missing', tenantId: null, projectId: null, count: 1 },
          ],
        }),
      ),
      'failed',
      /3 faults, 1 of them repaired \(2 slot_lost in acme\/web, 1 revision_missing in no project\): read its findings/,
    ],
    [
      'no audit after 36 hours',
      checkAudit(facts({ latest: undefined, workers: [{ ...WORKER, startedAt: NOW - 36 * HOUR - 1 }] })),
      'warning',
      /a full audit within the last 36 h, got none at all/,
    ],
    [
      'an old audit',
      checkAudit(
        facts({ latest: { ...AUDIT, completedAt: NOW - 36 * HOUR - 1 }, workers: [{ ...WORKER, startedAt: 0 }] }),
      ),
      'warning',
      /got the latest of 2026-03-02T23:59:59.999Z/,
    ],
    [
      'an old audit and a new worker',
      checkAudit(
        facts({ latest: { ...AUDIT, completedAt: NOW - 36 * HOUR - 1 }, workers: [WORKER, { ...DEAD, startedAt: 0 }] }),
      ),
      'ok',
      /found nothing/,
    ],
    [
      'an audit that is behind',
      checkAudit(facts({ auditedUntil: NOW - 11 * MINUTE })),
      'warning',
      /within 10 min, got those of the last 11 min still to compare: see whether the service auditor fails/,
    ],
    [
      'an audit that compares no recent slots',
      checkAudit(facts({ auditedUntil: null })),
      'warning',
      /got none compared yet/,
    ],
    [
      'an audit that is behind and a new worker',
      checkAudit(facts({ auditedUntil: NOW - HOUR, workers: [{ ...WORKER, startedAt: NOW - MINUTE }] })),
      'ok',
      /slots up to 60 min ago are compared/,
    ],
  ])('%s', (_what, check, status, message) => {
    expect(check).toMatchObject({ status, message: expect.stringMatching(message) as string })
  })
})

function server(version: string, versionNumber: number): { version: string; versionNumber: number; now: number } {
  return { version, versionNumber, now: NOW }
}

function drift(missing: number, unexpected: number): { missing: string[]; unexpected: string[] } {
  const lines = (count: number): string[] => Array.from({ length: count }, (_, at) => `line ${at + 1}`)
  return { missing: lines(missing), unexpected: lines(unexpected) }
}

function active(targetKind: string, schedules: number): { targetKind: string; schedules: number } {
  return { targetKind, schedules }
}

function waiting(targetKind: string, count: number, overdueMs: number): Parameters<typeof checkRuns>[0][number] {
  return { targetKind, waiting: count, overdueMs }
}

function facts(changes: Partial<AuditFacts>): AuditFacts {
  return { latest: AUDIT, auditedUntil: NOW - 2 * MINUTE, findings: [], workers: [WORKER], now: NOW, ...changes }
}
