import { describe, expect, test } from 'vitest'

import type { WorkerRecord } from '../store/workers.ts'
import {
  checkAudit,
  checkDatabase,
  checkJobs,
  checkSchema,
  checkSkew,
  checkTzdata,
  checkWorkers,
  type Check,
} from './checks.ts'

const HOUR = 3_600_000
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
}
const DEAD = { ...WORKER, isAlive: false }
const AUDIT = {
  id: '018f0000-0000-7000-8000-000000000002',
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

describe('what a doctor says', () => {
  test.each<Case>([
    ['of a server', checkDatabase(server('18.1', 180_001), 0.4), 'ok', /^Postgres 18.1 answered in 1 ms$/],
    ['of the oldest server', checkDatabase(server('15.0', 150_000), 1), 'ok', /15.0/],
    [
      'of one too old',
      checkDatabase(server('14.19', 140_019), 1),
      'failed',
      /expected Postgres 15 or later, got 14.19/,
    ],
    ['of one that is slow', checkDatabase(server('18.1', 180_001), 1001), 'warning', /answered in 1001 ms: slots/],
    ['of a sound schema', checkSchema(SCHEMA, drift(0, 0)), 'ok', /as the 1 migrations made it/],
    [
      'of pending migrations',
      checkSchema({ ...SCHEMA, pending: ['0002_a', '0003_b'] }, null),
      'failed',
      /0002_a, 0003_b/,
    ],
    ['of what lacks', checkSchema(SCHEMA, drift(1, 0)), 'failed', /by hand.*: missing line 1$/],
    ['of what is there besides', checkSchema(SCHEMA, drift(0, 2)), 'warning', /unexpected line 1; unexpected line 2$/],
    ['of much that differs', checkSchema(SCHEMA, drift(4, 4)), 'failed', /unexpected line 1 \(and 3 more\)$/],
    ['of the same clock', checkSkew(1000), 'ok', /1.0 s ahead of the database's$/],
    ['of a clock that is behind', checkSkew(-1001), 'warning', /1.0 s behind .*so no slot is early/],
    ['of a clock that is ahead', checkSkew(30_000), 'warning', /30.0 s ahead/],
    ['of a clock that is far off', checkSkew(-7_200_001), 'failed', /2 h behind/],
    ['of the same rules', checkTzdata('2026c', [WORKER]), 'ok', /^time zone rules 2026c, the same in 1 living worker$/],
    ['of a worker that does not say', checkTzdata('2026c', [{ ...WORKER, tzdataVersion: null }]), 'ok', /1 do not say/],
    [
      'of other rules',
      checkTzdata('2026c', [WORKER, { ...WORKER, name: 'two', tzdataVersion: '2025b' }]),
      'warning',
      /got 2026c here while two has 2025b: slots may be computed differently/,
    ],
    ['of other rules of the dead', checkTzdata('2026c', [{ ...DEAD, tzdataVersion: '2025b' }]), 'ok', /in 0 living/],
    ['of nobody, and nothing to do', checkWorkers([DEAD], []), 'ok', /^0 living workers$/],
    ['of nobody', checkWorkers([DEAD], [active('http', 3)]), 'warning', /no worker lives.* of http \(3\): start one/],
    ['of a worker', checkWorkers([WORKER], [active('http', 3)]), 'ok', /^1 living worker, serving http$/],
    [
      'of a kind that nobody serves',
      checkWorkers([WORKER], [active('agent', 2), active('graph', 1), active('http', 3)]),
      'failed',
      /no living worker serves .* of agent \(2\), graph \(1\): start one/,
    ],
    ['of no jobs', checkJobs([]), 'ok', /^0 jobs waiting$/],
    ['of jobs', checkJobs([jobs('a', 1, 60_000), jobs('b', 2, 0)]), 'ok', /^3 jobs waiting$/],
    [
      'of late jobs',
      checkJobs([jobs('a', 1, 60_001), jobs('b', 2, 600_000)]),
      'warning',
      /^3 jobs waiting; the oldest, of b, is overdue by 10 min/,
    ],
    ['of dead jobs', checkJobs([{ ...jobs('a', 0, 0), exhausted: 2 }]), 'warning', /2 jobs of a out of attempts/],
    ['of no audit yet', checkAudit(undefined, [WORKER], NOW), 'ok', /no audit yet/],
    [
      'of an audit',
      checkAudit(AUDIT, [WORKER], NOW),
      'ok',
      /of 2026-03-04T08:00:00.000Z found nothing among 240 slots/,
    ],
    [
      'of findings',
      checkAudit({ ...AUDIT, findings: 2, repaired: 1 }, [], NOW),
      'failed',
      /2 faults, 1 of them mended/,
    ],
    [
      'of no audit in all that time',
      checkAudit(undefined, [{ ...WORKER, startedAt: NOW - 36 * HOUR - 1 }], NOW),
      'warning',
      /within the last 36 h, got none at all/,
    ],
    [
      'of an old audit',
      checkAudit({ ...AUDIT, completedAt: NOW - 36 * HOUR - 1 }, [{ ...WORKER, startedAt: 0 }], NOW),
      'warning',
      /got the latest of 2026-03-02T23:59:59.999Z/,
    ],
    [
      'of an old audit, and a worker that has just come',
      checkAudit({ ...AUDIT, completedAt: NOW - 36 * HOUR - 1 }, [WORKER, { ...DEAD, startedAt: 0 }], NOW),
      'ok',
      /found nothing/,
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

function jobs(task: string, waiting: number, overdueMs: number): Parameters<typeof checkJobs>[0][number] {
  return { task, waiting, overdueMs, exhausted: 0 }
}
