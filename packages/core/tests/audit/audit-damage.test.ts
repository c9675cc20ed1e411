import type { FindingKind } from '@carillon/api'
import { describe, expect, test } from 'vitest'

import type { AuditorDeps } from '../../src/audit/auditor.ts'
import type { Schedule } from '../../src/ledger/records.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, HOUR, MINUTE, type Pipeline, type TestWorker } from '../pipeline.ts'
import { FAIL, SUCCEEDED } from '../scripted-target.ts'
import { TestAuditor } from '../test-auditor.ts'

const pipelineAt = emptiedPipelines()

/** A ledger at 09:02 with runs in every state. Nothing comes due before 09:30, and the worker has been idle for two minutes. */
interface World {
  readonly pipeline: Pipeline
  readonly worker: TestWorker
  /** Ran at 09:00 and succeeded. */
  readonly succeeded: Schedule
  /** Failed for good at 09:00, at its second attempt. */
  readonly failed: Schedule
  /** Failed at 09:00 and is retried in ten hours. */
  readonly retrying: Schedule
  /** Was tried at 09:00, then cancelled. */
  readonly cancelled: Schedule
  /** Had its slot of 09:00 skipped. */
  readonly skipped: Schedule
  /** Comes due at 09:30. */
  readonly quiet: Schedule
}

const DAILY = { cadence: { kind: 'cron', expression: '0 9 * * *', timezone: 'UTC' } }
const LATER = { retry: { maxAttempts: 3, baseSeconds: 36_000, capSeconds: 36_000 } }

async function setup(): Promise<World> {
  const pipeline = await pipelineAt('2026-11-14T08:59:00Z')
  const { clock, scheduler, target } = pipeline
  const worker = pipeline.worker()
  const succeeded = await pipeline.create(DAILY)
  const failed = await pipeline.create({
    ...DAILY,
    policy: { retry: { maxAttempts: 2, baseSeconds: 1, capSeconds: 1 } },
  })
  const retrying = await pipeline.create({ ...DAILY, policy: LATER })
  const cancelled = await pipeline.create({ ...DAILY, policy: LATER })
  const skipped = await pipeline.create(DAILY)
  const quiet = await pipeline.create({ cadence: { kind: 'cron', expression: '30 9 * * *', timezone: 'UTC' } })
  await scheduler.skip(CALLER, skipped.id, Date.parse('2026-11-14T09:00:00Z'))
  target.script = ({ scheduleId }) => (scheduleId === succeeded.id ? SUCCEEDED : FAIL)
  clock.advance(MINUTE)
  await worker.runDue()
  await pipeline.pass(10_000, worker)
  await worker.runDue()
  const [run] = await pipeline.ledger(cancelled)
  if (run !== undefined) await scheduler.cancel(CALLER, run.id)
  // A worker that has held nothing for a minute counts as having room.
  await pipeline.pass(2 * MINUTE, worker)
  return { pipeline, worker, succeeded, failed, retrying, cancelled, skipped, quiet }
}

function auditorOf({ workerDb: db, clock, events }: Pipeline, deps: Partial<AuditorDeps> = {}): TestAuditor {
  return new TestAuditor({ db, clock, events, ...deps })
}

interface Damage {
  readonly what: string
  readonly plant: (world: World) => Promise<unknown>
  /** The findings by kind, all of one schedule. */
  readonly finds: Partial<Record<FindingKind, number>>
  readonly of: (world: World) => Schedule
  /** Whether the audit repairs the damage, so that the next audit finds nothing. @default false */
  readonly isRepaired?: boolean
}

const run = (text: string, of: (world: World) => Schedule) => {
  return async (world: World): Promise<void> => {
    const { rowCount } = await world.pipeline.database.pool.query(text.replaceAll('$id', `'${of(world).id}'`))
    expect(rowCount).toBeGreaterThan(0)
  }
}
const ofSucceeded = ({ succeeded }: World): Schedule => succeeded
const ofFailed = ({ failed }: World): Schedule => failed
const ofRetrying = ({ retrying }: World): Schedule => retrying
const ofCancelled = ({ cancelled }: World): Schedule => cancelled
const ofSkipped = ({ skipped }: World): Schedule => skipped
const ofQuiet = ({ quiet }: World): Schedule => quiet

const DAMAGES: readonly Damage[] = [
  {
    what: 'the line of a slot that ran is deleted',
    plant: run('delete from carillon.runs where schedule_id = $id', ofSucceeded),
    finds: { slot_lost: 1 },
    of: ofSucceeded,
    isRepaired: true,
  },
  {
    what: 'the line of a slot that ran is deleted with its attempts',
    plant: run(
      'with gone as (delete from carillon.attempts where schedule_id = $id) delete from carillon.runs where schedule_id = $id',
      ofSucceeded,
    ),
    finds: { slot_lost: 1, count_wrong: 1 },
    of: ofSucceeded,
    isRepaired: true,
  },
  {
    what: 'the line of a slot that did not run is deleted',
    plant: run('delete from carillon.runs where schedule_id = $id', ofSkipped),
    finds: { slot_lost: 1 },
    of: ofSkipped,
    isRepaired: true,
  },
  {
    what: 'a schedule is moved past a slot',
    plant: async (world) => {
      const { pipeline, worker, quiet } = world
      await run(
        `update carillon.schedules set next_slot_at = next_slot_at + interval '1 day', due_at = due_at + interval '1 day' where id = $id`,
        ofQuiet,
      )(world)
      await pipeline.pass(HOUR / 2, worker)
      expect(await pipeline.lines(quiet)).toEqual([])
    },
    finds: { slot_lost: 1 },
    of: ofQuiet,
    isRepaired: true,
  },
  {
    what: 'a line is written for an instant that is no slot',
    plant: run(
      `insert into carillon.runs (
         schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, reason, begun_at, completed_at
       )
       select schedule_id, scheduled_for + interval '1 second', gen_random_uuid(), tenant_id, project_id, revision, trigger, state,
         reason, begun_at, completed_at
       from carillon.runs where schedule_id = $id`,
      ofSkipped,
    ),
    finds: { slot_unknown: 1 },
    of: ofSkipped,
  },
  {
    what: 'a schedule is put into a lane that no worker looks at',
    plant: run(
      `update carillon.schedules set lane = 'test.64', due_at = '2026-11-14T09:00Z', next_slot_at = '2026-11-14T09:00Z' where id = $id`,
      ofQuiet,
    ),
    finds: { schedule_past_due: 1 },
    of: ofQuiet,
  },
  {
    what: 'a waiting run is put into a lane that no worker looks at',
    plant: run(
      `update carillon.runs set lane = 'test.64', due_at = '2026-11-14T09:00:01Z' where schedule_id = $id`,
      ofRetrying,
    ),
    finds: { run_stuck: 1 },
    of: ofRetrying,
  },
  {
    what: 'a waiting run is put into a lane of a target kind that no worker serves',
    plant: run(
      `update carillon.runs set lane = 'graph.1', due_at = '2026-11-14T09:00:01Z' where schedule_id = $id`,
      ofRetrying,
    ),
    finds: { run_stuck: 1 },
    of: ofRetrying,
  },
  {
    what: 'a run waits for its turn, but no other run is open',
    plant: run(
      `update carillon.runs set state = 'pending', reason = null, completed_at = null, waits_for = 'turn', due_at = 'infinity', lane = 'test.1'
       where schedule_id = $id`,
      ofSkipped,
    ),
    finds: { run_stuck: 1, count_wrong: 1 },
    of: ofSkipped,
  },
  {
    what: 'a run is given to a worker that does not exist',
    plant: run(
      `update carillon.runs
       set state = 'running', attempt_count = 2, worker_id = gen_random_uuid(), waits_for = null, due_at = null, lane = null
       where schedule_id = $id`,
      ofRetrying,
    ),
    finds: { run_without_lease: 1 },
    of: ofRetrying,
  },
  {
    what: 'the only attempt is deleted',
    plant: run('delete from carillon.attempts where schedule_id = $id', ofSucceeded),
    finds: { attempt_missing: 1 },
    of: ofSucceeded,
  },
  {
    what: 'the first of two attempts is deleted',
    plant: run('delete from carillon.attempts where schedule_id = $id and attempt = 1', ofFailed),
    finds: { attempt_missing: 1 },
    of: ofFailed,
  },
  {
    what: 'the last of two attempts is deleted',
    plant: run('delete from carillon.attempts where schedule_id = $id and attempt = 2', ofFailed),
    finds: { attempt_missing: 1 },
    of: ofFailed,
  },
  {
    what: 'the attempt of a run that waits is deleted',
    plant: run('delete from carillon.attempts where schedule_id = $id', ofRetrying),
    finds: { attempt_missing: 1 },
    of: ofRetrying,
  },
  {
    what: 'an attempt that was never made is inserted',
    plant: run(
      `insert into carillon.attempts (schedule_id, scheduled_for, attempt, tenant_id, project_id, worker_id, outcome, started_at, completed_at)
       select schedule_id, scheduled_for, 1, tenant_id, project_id, gen_random_uuid(), 'succeeded', begun_at, completed_at
       from carillon.runs where schedule_id = $id`,
      ofSkipped,
    ),
    finds: { attempt_missing: 1 },
    of: ofSkipped,
  },
  {
    what: 'the number of attempts is changed',
    plant: run('update carillon.runs set attempt_count = 3 where schedule_id = $id', ofFailed),
    finds: { attempt_missing: 1 },
    of: ofFailed,
  },
  {
    what: 'the current revision is deleted',
    plant: run('delete from carillon.schedule_revisions where schedule_id = $id', ofQuiet),
    finds: { revision_missing: 1 },
    of: ofQuiet,
  },
  {
    what: 'the revision of a run is deleted',
    plant: async (world) => {
      await world.pipeline.scheduler.edit(CALLER, world.succeeded.id, { name: 'Another' }, { revision: 1 })
      await run('delete from carillon.schedule_revisions where schedule_id = $id and revision = 1', ofSucceeded)(world)
    },
    finds: { revision_missing: 1 },
    of: ofSucceeded,
  },
  {
    what: 'a success is rewritten to skipped',
    plant: run(`update carillon.runs set state = 'skipped', reason = 'missed' where schedule_id = $id`, ofSucceeded),
    finds: { run_contradicted: 1 },
    of: ofSucceeded,
  },
  {
    what: 'a success is rewritten to failed',
    plant: run(`update carillon.runs set state = 'failed' where schedule_id = $id`, ofSucceeded),
    finds: { run_contradicted: 1, count_wrong: 1 },
    of: ofSucceeded,
  },
  {
    what: 'a success is rewritten to cancelled',
    plant: run(`update carillon.runs set state = 'cancelled' where schedule_id = $id`, ofSucceeded),
    finds: { run_contradicted: 1 },
    of: ofSucceeded,
  },
  {
    what: 'a failure is rewritten to succeeded',
    plant: run(`update carillon.runs set state = 'succeeded' where schedule_id = $id`, ofFailed),
    finds: { run_contradicted: 1, count_wrong: 1 },
    of: ofFailed,
  },
  {
    what: 'a cancelled run is rewritten to succeeded',
    plant: run(`update carillon.runs set state = 'succeeded' where schedule_id = $id`, ofCancelled),
    finds: { run_contradicted: 1 },
    of: ofCancelled,
  },
  {
    what: 'an attempt is rewritten',
    plant: run(`update carillon.attempts set outcome = 'failed' where schedule_id = $id`, ofSucceeded),
    finds: { run_contradicted: 1 },
    of: ofSucceeded,
  },
  {
    what: 'a run that has ended is set to run again',
    plant: run(
      `update carillon.runs set state = 'retrying', completed_at = null, waits_for = 'retry', due_at = '2026-11-15Z', lane = 'test.1'
       where schedule_id = $id`,
      ofSucceeded,
    ),
    finds: { run_contradicted: 1 },
    of: ofSucceeded,
  },
  {
    what: 'a run ends before its attempt',
    plant: run(
      `update carillon.runs set completed_at = completed_at - interval '400 milliseconds' where schedule_id = $id`,
      ofSucceeded,
    ),
    finds: { run_contradicted: 1 },
    of: ofSucceeded,
  },
  {
    what: 'the count of runs is raised',
    plant: run('update carillon.schedules set run_count = run_count + 1 where id = $id', ofSucceeded),
    finds: { count_wrong: 1 },
    of: ofSucceeded,
    isRepaired: true,
  },
  {
    what: 'the count of failures is lowered',
    plant: run('update carillon.schedules set failure_count = 0 where id = $id', ofFailed),
    finds: { count_wrong: 1 },
    of: ofFailed,
    isRepaired: true,
  },
  {
    what: 'the count of consecutive failures is raised',
    plant: run('update carillon.schedules set consecutive_failures = 9 where id = $id', ofFailed),
    finds: { count_wrong: 1 },
    of: ofFailed,
    isRepaired: true,
  },
  {
    what: 'the count of consecutive failures is lowered',
    plant: run('update carillon.schedules set consecutive_failures = 0 where id = $id', ofFailed),
    finds: { count_wrong: 1 },
    of: ofFailed,
    isRepaired: true,
  },
  {
    what: 'a schedule that succeeded last is given failures',
    plant: run('update carillon.schedules set consecutive_failures = 2 where id = $id', ofSucceeded),
    finds: { count_wrong: 1 },
    of: ofSucceeded,
    isRepaired: true,
  },
]

/** The number of stored findings, by schedule and kind. */
async function findingsOf({ pipeline }: World): Promise<Record<string, Record<string, number>>> {
  const found: Record<string, Record<string, number>> = {}
  for (const { scheduleId, kind, detail } of await pipeline.scheduler.findings(CALLER, { limit: 100 })) {
    // The detail says what was found, and what to do.
    expect(detail).toMatch(/^.+: .+$/)
    const counts = (found[scheduleId ?? ''] ??= {})
    counts[kind] = (counts[kind] ?? 0) + 1
  }
  return found
}

test('an audit finds nothing in a sound ledger with runs in every state', async () => {
  const world = await setup()
  const { pipeline, succeeded, failed, retrying, cancelled, skipped } = world

  const counts = await auditorOf(pipeline).audit()

  expect(Object.values(counts.findings).filter((count) => count > 0)).toEqual([])
  const lines = await Promise.all([succeeded, failed, retrying, cancelled, skipped].map((of) => pipeline.lines(of)))
  expect(lines.flat()).toEqual([
    '09:00 succeeded',
    '09:00 failed',
    '09:00 retrying',
    '09:00 cancelled',
    '09:00 skipped excluded',
  ])
})

describe('a requested audit finds damage that was done by hand within a minute', () => {
  test.each(DAMAGES)('$what', async ({ plant, finds, of, isRepaired = false }) => {
    const world = await setup()
    const { pipeline, worker } = world
    await plant(world)
    const auditor = auditorOf(pipeline)

    const requestedAt = await pipeline.scheduler.requestAudit()
    for (let seconds = 0; seconds < 60; seconds += 2) {
      await auditor.runOnce()
      const latest = await pipeline.scheduler.latestAudit()
      if (latest !== undefined && latest.startedAt >= requestedAt && latest.isWhole) break
      await pipeline.pass(2000, worker)
    }

    expect(await findingsOf(world)).toEqual({ [of(world).id]: finds })
    const total = Object.values(finds).reduce((sum, count) => sum + count, 0)
    expect(await pipeline.scheduler.latestAudit()).toMatchObject({ isWhole: true, findings: total })
    const again = await auditorOf(pipeline).audit()
    const left = Object.fromEntries(Object.entries(again.findings).filter(([, count]) => count > 0))
    const { count_wrong: _, ...unrepaired } = finds
    expect(left).toEqual(isRepaired ? {} : unrepaired)
  })
})

describe('the continuous audit finds damage that was done by hand within ten minutes', () => {
  test.each(DAMAGES)('$what', async ({ plant, finds, of }) => {
    const world = await setup()
    const { pipeline, worker } = world
    const auditor = auditorOf(pipeline)
    expect(await auditor.runOnce()).toMatchObject({ isWhole: true, repaired: 0 })
    await plant(world)

    for (let seconds = 0; seconds < 600; seconds += 30) {
      await pipeline.pass(30_000, worker)
      await auditor.runOnce()
    }

    expect(await findingsOf(world)).toEqual({ [of(world).id]: finds })
  })
})
