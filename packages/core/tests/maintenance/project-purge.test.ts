import { describe, expect, test } from 'vitest'

import { Grants } from '../../src/access/grants.ts'
import { Keys } from '../../src/access/keys.ts'
import { Members } from '../../src/access/members.ts'
import { Secrets } from '../../src/access/secrets.ts'
import type { Tx } from '../../src/db/database.ts'
import { transactScoped } from '../../src/db/transact.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import type { Caller } from '../../src/kernel/scope.ts'
import { Projects } from '../../src/maintenance/purge.ts'
import {
  countProjectRows,
  countScheduleRows,
  deleteAttempts,
  deleteBacklogs,
  deleteChanges,
  deleteGrants,
  deleteIdempotentAnswers,
  deleteMembers,
  deleteRevisions,
  deleteRuns,
  deleteSecrets,
  deleteWhole,
  findPurgeObstacles,
  lockRemovable,
  type PurgeCounts,
} from '../../src/maintenance/store/purge.ts'
import { whenBlocked, whileHeld } from '../blocked-statement.ts'
import { holdRun } from '../held-run.ts'
import { changeAndDie, finish, PORTION, writerOf } from '../left-backlog.ts'
import { CALLER, EVERY_MINUTE, MINUTE, Pipeline } from '../pipeline.ts'
import { watchedDb } from '../query-plan.ts'
import { SUCCEEDED } from '../scripted-target.ts'
import { sql } from '../sql.ts'
import { TestAuditor } from '../test-auditor.ts'

const START = '2026-03-02T09:00:30Z'
const CONFIRMED = { name: CALLER.projectId }
const OTHERS: readonly Caller[] = [
  { ...CALLER, tenantId: 'globex' },
  { ...CALLER, projectId: 'shop' },
]
const NO_ROWS: PurgeCounts = {
  schedules: 0,
  runs: 0,
  attempts: 0,
  transcriptLines: 0,
  changes: 0,
  revisions: 0,
  grants: 0,
  secrets: 0,
  members: 0,
  idempotentAnswers: 0,
  moduleRows: 0,
}
const TABLES = [
  'schedules',
  'runs',
  'attempts',
  'transcripts',
  'slot_backlogs',
  'schedule_changes',
  'schedule_revisions',
  'execution_grants',
  'secrets',
  'members',
  'idempotent_answers',
  'api_keys',
] as const

function projectsOf({ db, clock }: Pipeline): Projects {
  return new Projects({ db, clock })
}

/** Fills a project with two schedules, one of them edited, a grant, a secret, members and a key. */
async function fill({ db, clock, scheduler }: Pipeline, caller: Caller): Promise<void> {
  const grant = await new Grants({ db, clock }).create(caller, { scopes: ['test:dispatch:*'] })
  const { schedule } = await scheduler.createOnce(caller, EVERY_MINUTE, 'once')
  await scheduler.create(caller, { ...EVERY_MINUTE, grantId: grant.id })
  await scheduler.edit(caller, schedule.id, { name: 'renamed' }, { revision: 1 })
  await new Secrets({ db, clock, keys: [Buffer.alloc(32)] }).put(caller, 'hook', 'value')
  const members = new Members({ db, clock })
  await members.put(caller, 'user:admin', 'admin')
  await members.put(caller, 'user:reader', 'member')
  await members.put(caller, 'user:removed', 'admin')
  await members.remove(caller, 'user:removed')
  await new Keys({ db, clock }).create(caller, { ...caller, role: 'admin' })
}

async function passTwoSlots(pipeline: Pipeline): Promise<void> {
  const worker = pipeline.worker()
  pipeline.target.script = ({ record }) => {
    for (const text of ['first', 'second']) record({ kind: 'text', text })
    return SUCCEEDED
  }
  for (let slots = 0; slots < 2; slots += 1) {
    await pipeline.pass(MINUTE, worker)
    await worker.runDue()
  }
}

/** Every row of a project as text, by table. */
async function rowsOf({ db }: Pipeline, { tenantId, projectId }: Caller): Promise<Record<string, string[]>> {
  const all: Record<string, string[]> = {}
  for (const table of TABLES) {
    const { rows } = await sql<{ line: string }>`
      select t::text as line
      from carillon.${sql.raw(table)} as t
      where t.tenant_id = ${tenantId} and t.project_id = ${projectId}
      order by 1`.execute(db)
    all[table] = rows.map(({ line }) => line)
  }
  return all
}

function sum(counts: readonly PurgeCounts[]): PurgeCounts {
  const names = Object.keys(NO_ROWS) as (keyof PurgeCounts)[]
  const totals = names.map((name) => [name, counts.reduce((total, each) => total + each[name], 0)])
  return { ...NO_ROWS, ...(Object.fromEntries(totals) as PurgeCounts) }
}

/** Adds this many later lines to a schedule, each with its attempt, and deletes the schedule. */
async function deleteWithLines(pipeline: Pipeline, schedule: { readonly id: string }, lines: number): Promise<void> {
  await addLines(pipeline, schedule, lines)
  await pipeline.scheduler.delete(CALLER, schedule.id)
}

async function addLines({ db }: Pipeline, { id }: { readonly id: string }, lines: number): Promise<void> {
  await sql`
    with slots as (
      select ${START}::timestamptz + interval '3 days' + number * interval '1 second' as slot
      from generate_series(1, ${lines}) as number
    ), attempts as (
      insert into carillon.attempts (
        schedule_id, scheduled_for, attempt, tenant_id, project_id, worker_id, outcome, started_at, completed_at
      )
      select ${id}::uuid, slot, 1, 'acme', 'web', gen_random_uuid(), 'succeeded', slot, slot
      from slots
    ), transcripts as (
      insert into carillon.transcripts (
        schedule_id, scheduled_for, token, seq, attempt, tenant_id, project_id, at, entry
      )
      select ${id}::uuid, slot, 1, 1, 1, 'acme', 'web', slot, '{"kind":"text"}'
      from slots
    )
    insert into carillon.runs (
      schedule_id, scheduled_for, id, tenant_id, project_id, revision, trigger, state, attempt_count, begun_at, completed_at
    )
    select ${id}::uuid, slot, gen_random_uuid(), 'acme', 'web', 1, 'manual', 'succeeded', 1, slot, slot
    from slots`.execute(db)
}

/** Records how many rows each transaction deletes. A delete fails once more than `most` runs have been deleted in all. */
async function noteDeletions({ db }: Pipeline, most: number): Promise<void> {
  await sql`create table public.deletions (xact xid8 not null, relation text not null, row_count bigint not null)`.execute(
    db,
  )
  await sql`grant select, insert on public.deletions to public`.execute(db)
  await sql`
    create function public.note_deletion() returns trigger language plpgsql as $$
    begin
      insert into public.deletions select pg_current_xact_id(), tg_table_name, count(*) from gone;
      if (select sum(row_count) from public.deletions where relation = 'runs') > ${sql.raw(String(most))} then
        raise exception 'interrupted by the test';
      end if;
      return null;
    end
    $$`.execute(db)
  for (const table of [
    'runs',
    'attempts',
    'transcripts',
    'schedule_changes',
    'schedule_revisions',
    'execution_grants',
  ]) {
    await sql`
      create trigger note_deletion after delete on carillon.${sql.raw(table)} referencing old table as gone
      for each statement execute function public.note_deletion()`.execute(db)
  }
}

test('a purge removes what its preview counted, and no row of another project or tenant (I9)', async () => {
  await using pipeline = await Pipeline.at(START)
  const projects = projectsOf(pipeline)
  for (const caller of [CALLER, ...OTHERS]) await fill(pipeline, caller)
  await passTwoSlots(pipeline)
  const preview = await projects.previewPurge(CALLER)
  await pipeline.scheduler.deleteProject(CALLER)
  const others = await Promise.all(OTHERS.map((other) => rowsOf(pipeline, other)))

  expect(preview).toEqual({
    schedules: 2,
    runs: 4,
    attempts: 4,
    transcriptLines: 8,
    changes: 3,
    revisions: 3,
    grants: 2,
    secrets: 1,
    members: 1,
    idempotentAnswers: 1,
    moduleRows: 0,
  })
  const deleted = await projects.previewPurge(CALLER)
  expect(deleted).toEqual({ ...preview, changes: 5 })

  expect(await projects.purge(CALLER, CONFIRMED)).toEqual(deleted)

  expect(await projects.previewPurge(CALLER)).toEqual(NO_ROWS)
  expect(await projects.purge(CALLER, CONFIRMED)).toEqual(NO_ROWS)
  expect(await Promise.all(OTHERS.map((other) => rowsOf(pipeline, other)))).toEqual(others)
})

test('a purge keeps removed members and members that are not admins, because their keys would otherwise permit more', async () => {
  await using pipeline = await Pipeline.at(START)
  await fill(pipeline, CALLER)
  await pipeline.scheduler.deleteProject(CALLER)

  await projectsOf(pipeline).purge(CALLER, CONFIRMED)

  const { members, api_keys, ...rest } = await rowsOf(pipeline, CALLER)
  expect(members).toEqual([
    expect.stringContaining('user:reader,member') as string,
    expect.stringContaining('user:removed,admin') as string,
  ])
  expect(api_keys).toHaveLength(1)
  expect(Object.values(rest).flat()).toEqual([])
})

test('a project can be used again after a purge', async () => {
  await using pipeline = await Pipeline.at(START)
  await fill(pipeline, CALLER)
  await pipeline.scheduler.deleteProject(CALLER)
  await projectsOf(pipeline).purge(CALLER, CONFIRMED)

  const schedule = await pipeline.create()
  await passTwoSlots(pipeline)

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded', '09:02 succeeded'])
})

describe('portions', () => {
  const LINES = 7000

  test('no transaction removes more than 5,000 rows', async () => {
    await using pipeline = await Pipeline.at(START)
    await deleteWithLines(pipeline, await pipeline.create(), LINES)
    await noteDeletions(pipeline, LINES)

    const purged = await projectsOf(pipeline).purge(CALLER, CONFIRMED)

    expect(purged).toMatchObject({ schedules: 1, runs: LINES, attempts: LINES, transcriptLines: LINES })
    const { rows } = await sql<{ rows: number }>`
      select sum(row_count)::int as rows from public.deletions group by xact`.execute(pipeline.db)
    expect(Math.max(...rows.map(({ rows }) => rows))).toBe(5000)
  })

  test('an audit finds nothing wrong after a purge that was interrupted, and the next purge removes the rest', async () => {
    await using pipeline = await Pipeline.at(START)
    const { db, clock, events } = pipeline
    const projects = projectsOf(pipeline)
    const schedule = await pipeline.create()
    await passTwoSlots(pipeline)
    await deleteWithLines(pipeline, schedule, LINES)
    const preview = await projects.previewPurge(CALLER)
    await noteDeletions(pipeline, LINES - 1)

    await expect(projects.purge(CALLER, CONFIRMED)).rejects.toThrow('interrupted by the test')

    const left = await projects.previewPurge(CALLER)
    expect(left).toMatchObject({ schedules: 1, attempts: 0, revisions: 0 })
    expect(left.runs).toBeGreaterThan(0)
    expect(left.runs).toBeLessThan(preview.runs)
    clock.advance(MINUTE)
    const { findings } = await new TestAuditor({ db, clock, events }).audit()
    expect(Object.values(findings).filter((count) => count > 0)).toEqual([])
    await sql`drop function public.note_deletion() cascade`.execute(db)
    expect(await projects.purge(CALLER, CONFIRMED)).toEqual(left)
    expect(await projects.previewPurge(CALLER)).toEqual(NO_ROWS)
  })

  test('no row of a schedule is removed while another transaction has locked the schedule', async () => {
    await using pipeline = await Pipeline.at(START)
    await deleteWithLines(pipeline, await pipeline.create(), LINES)
    const projects = projectsOf(pipeline)
    const before = await projects.previewPurge(CALLER)
    let purging: Promise<PurgeCounts> | undefined

    await whileHeld(pipeline, 'select from carillon.schedules for update', async () => {
      purging = projects.purge(CALLER, CONFIRMED)
      await whenBlocked(pipeline)
      expect(await projects.previewPurge(CALLER)).toEqual(before)
    })

    expect(await purging).toEqual(before)
  })

  test('all schedules are counted and removed even if they do not fit one portion', async () => {
    await using pipeline = await Pipeline.at(START)
    for (let schedules = 0; schedules < 101; schedules += 1) {
      await pipeline.scheduler.create({ ...CALLER, subject: `service:s${schedules}` }, EVERY_MINUTE)
    }
    await pipeline.scheduler.deleteProject(CALLER)
    const projects = projectsOf(pipeline)

    const all = { ...NO_ROWS, schedules: 101, changes: 202, revisions: 101, grants: 101 }
    expect(await projects.previewPurge(CALLER)).toEqual(all)
    expect(await projects.purge(CALLER, CONFIRMED)).toEqual(all)
  })

  test('concurrent purges remove every row once', async () => {
    await using pipeline = await Pipeline.at(START)
    const projects = projectsOf(pipeline)
    await fill(pipeline, CALLER)
    await passTwoSlots(pipeline)
    await pipeline.scheduler.deleteProject(CALLER)
    await deleteWithLines(pipeline, await pipeline.create(), LINES)
    const preview = await projects.previewPurge(CALLER)

    const purged = await Promise.all([1, 2, 3].map(() => projects.purge(CALLER, CONFIRMED)))

    expect(sum(purged)).toEqual(preview)
    expect(await projects.previewPurge(CALLER)).toEqual(NO_ROWS)
  })
})

describe('lines that are still to be written', () => {
  const MISSED = 2500
  const LINES = 7000

  /** A schedule that was deleted after an outage, by a server that died right after the commit. */
  async function setup() {
    const pipeline = await Pipeline.at(START)
    const schedule = await pipeline.create()
    pipeline.clock.advance(MISSED * MINUTE)
    await changeAndDie(pipeline, (scheduler) => scheduler.deleteProject(CALLER))
    return { pipeline, schedule, projects: projectsOf(pipeline) }
  }

  async function countRuns({ db }: Pipeline): Promise<number> {
    return (await sql`select from carillon.runs`.execute(db)).rows.length
  }

  test('are never written after the project was purged', async () => {
    const { pipeline, projects } = await setup()
    await using _ = pipeline

    expect(await projects.purge(CALLER, CONFIRMED)).toMatchObject({ schedules: 1, runs: PORTION })

    expect(await finish(writerOf(pipeline))).toBe(0)
    expect(Object.values(await rowsOf(pipeline, CALLER)).flat()).toEqual([])
  })

  test('are removed if their portion is being written, because the purge waits for it', async () => {
    const { pipeline, projects } = await setup()
    await using _ = pipeline
    let purging: Promise<PurgeCounts> | undefined
    const db = watchedDb(pipeline.database.pool, async (query) => {
      if (purging !== undefined || !query.text.includes('insert into runs')) return
      purging = projects.purge(CALLER, CONFIRMED)
      await whenBlocked(pipeline)
    })

    const lines = await finish(writerOf(pipeline, db))

    expect(await purging).toMatchObject({ schedules: 1, runs: PORTION + lines })
    expect(Object.values(await rowsOf(pipeline, CALLER)).flat()).toEqual([])
  })

  test('are not written while a schedule that does not fit one portion is being removed', async () => {
    const { pipeline, schedule, projects } = await setup()
    await using _ = pipeline
    await addLines(pipeline, schedule, LINES)
    await noteDeletions(pipeline, LINES - 1)
    await expect(projects.purge(CALLER, CONFIRMED)).rejects.toThrow('interrupted by the test')
    const left = await countRuns(pipeline)

    expect(await finish(writerOf(pipeline))).toBe(0)

    expect(left).toBeGreaterThan(0)
    expect(await countRuns(pipeline)).toBe(left)
  })

  test('stay in a backlog if they belong to another project', async () => {
    const { pipeline, projects } = await setup()
    await using _ = pipeline
    const [other] = OTHERS
    if (other === undefined) throw new Error('expected another project')
    await pipeline.scheduler.create(other, EVERY_MINUTE)
    pipeline.clock.advance(MISSED * MINUTE)
    await changeAndDie(pipeline, (scheduler) => scheduler.deleteProject(other))
    const before = await rowsOf(pipeline, other)

    await projects.purge(CALLER, CONFIRMED)

    expect(await rowsOf(pipeline, other)).toEqual(before)
    expect(before['slot_backlogs']).toHaveLength(1)
  })
})

describe('nothing is removed', () => {
  test('if a purge is confirmed by another name', async () => {
    await using pipeline = await Pipeline.at(START)
    await fill(pipeline, CALLER)
    await pipeline.scheduler.deleteProject(CALLER)
    const before = await rowsOf(pipeline, CALLER)

    for (const name of ['', 'Web', ' web', 'web\n', 'shop', 'acme', '*', '%']) {
      await expect(projectsOf(pipeline).purge(CALLER, { name })).rejects.toMatchObject({ code: 'purge_refused' })
    }

    expect(await rowsOf(pipeline, CALLER)).toEqual(before)
  })

  test('if the input is invalid or the project is reserved', async () => {
    await using pipeline = await Pipeline.at(START)
    const projects = projectsOf(pipeline)

    for (const input of [null, {}, { name: ['web'] }, { name: 'web', force: true }]) {
      const refusal = projects.purge(CALLER, input as { name: string })
      await expect(refusal).rejects.toMatchObject({ code: 'invalid_input' })
    }
    const platform = { ...CALLER, projectId: '_platform' }
    await expect(projects.purge(platform, { name: '_platform' })).rejects.toMatchObject({ code: 'invalid_input' })
    await expect(projects.previewPurge(platform)).rejects.toMatchObject({ code: 'invalid_input' })
  })

  test.each<[state: string, prepare: (pipeline: Pipeline) => Promise<unknown>]>([
    ['active', () => Promise.resolve()],
    ['paused', async ({ scheduler, db }) => scheduler.pause(CALLER, await firstId(db), { reason: 'holiday' })],
    [
      'completed',
      ({ db }) =>
        sql`
      update carillon.schedules set state = 'completed', next_slot_at = null, due_at = null`.execute(db),
    ],
  ])('if a schedule of the project is %s', async (state, prepare) => {
    await using pipeline = await Pipeline.at(START)
    await fill(pipeline, CALLER)
    await prepare(pipeline)
    const before = await rowsOf(pipeline, CALLER)
    expect(before['schedules']?.join()).toContain(state)

    await expect(projectsOf(pipeline).purge(CALLER, CONFIRMED)).rejects.toMatchObject({
      code: 'state_conflict',
      message: expect.stringContaining("delete the project's schedules first") as string,
    })

    expect(await rowsOf(pipeline, CALLER)).toEqual(before)
  })

  test('if a run of the project is under way, until it has ended', async () => {
    await using pipeline = await Pipeline.at(START)
    const { answer } = await holdRun(pipeline, { overlap: 'forbid' })
    await pipeline.scheduler.deleteProject(CALLER)
    const projects = projectsOf(pipeline)
    const before = await rowsOf(pipeline, CALLER)

    await expect(projects.purge(CALLER, CONFIRMED)).rejects.toMatchObject({
      code: 'state_conflict',
      message: expect.stringContaining('without open runs') as string,
    })

    expect(await rowsOf(pipeline, CALLER)).toEqual(before)
    await answer(0, SUCCEEDED)
    expect(await projects.purge(CALLER, CONFIRMED)).toMatchObject({ schedules: 1, runs: 1, attempts: 1 })
  })

  test('of a schedule that is created during the purge, nor of its grant', async () => {
    await using pipeline = await Pipeline.at(START)
    const { db, clock } = pipeline
    const deleted = await pipeline.create()
    await pipeline.scheduler.delete(CALLER, deleted.id)
    const grant = await new Grants({ db, clock }).create(CALLER, { scopes: ['test:dispatch:*'] })
    const createdId = '01900000-0000-7000-8000-000000000000'
    let purging: Promise<unknown> | undefined

    // The insert is not committed when the purge looks for schedules, but it is before the purge can lock the grant.
    await whileHeld(pipeline, insertOf(createdId, grant.id), async () => {
      purging = projectsOf(pipeline)
        .purge(CALLER, CONFIRMED)
        .catch((error: unknown) => error)
      await whenBlocked(pipeline)
    })

    expect(await purging).toMatchObject({ code: 'state_conflict' })
    const { schedules, execution_grants } = await rowsOf(pipeline, CALLER)
    expect(schedules).toEqual([expect.stringContaining(createdId) as string])
    expect(execution_grants).toContainEqual(expect.stringContaining(grant.id))
  })

  test('that is needed by a schedule created while the purge waited', async () => {
    await using pipeline = await Pipeline.at(START)
    await fill(pipeline, CALLER)
    await pipeline.scheduler.deleteProject(CALLER)
    const before = await rowsOf(pipeline, CALLER)
    let purging: Promise<unknown> | undefined

    await whileHeld(pipeline, 'select from carillon.schedules for update', async () => {
      purging = projectsOf(pipeline)
        .purge(CALLER, CONFIRMED)
        .catch((error: unknown) => error)
      await whenBlocked(pipeline)
      await pipeline.create()
    })

    expect(await purging).toMatchObject({ code: 'state_conflict' })
    const { schedules, execution_grants, secrets, members } = await rowsOf(pipeline, CALLER)
    expect(schedules).toHaveLength(1)
    expect(execution_grants).toHaveLength((before['execution_grants']?.length ?? 0) + 1)
    expect({ secrets, members }).toEqual({ secrets: before['secrets'], members: before['members'] })
  })

  function insertOf(id: string, grantId: string): string {
    return `
      insert into carillon.schedules (
        id, tenant_id, project_id, owner_subject, target_kind, state, revision, grant_id, next_slot_at, due_at,
        auto_pause_threshold, created_by_subject, created_at
      )
      values (
        '${id}', 'acme', 'web', 'user:alice', 'test', 'active', 1, '${grantId}', '2026-03-02T10:00:00Z',
        '2026-03-02T10:00:00Z', 10, 'user:alice', '2026-03-02T09:00:00Z'
      );
      insert into carillon.schedule_revisions (
        schedule_id, revision, tenant_id, project_id, name, cadence_kind, cadence_once, target_kind, target, policy, grant_id,
        required_scope, changed_by_subject, changed_at
      )
      values (
        '${id}', 1, 'acme', 'web', 'new', 'once', '{}', 'test', '{}', '{}', '${grantId}', 'test:dispatch:bell', 'user:alice',
        '2026-03-02T09:00:00Z'
      )`
  }

  async function firstId(db: Pipeline['db']): Promise<string> {
    const { rows } = await sql<{ id: string }>`select id from carillon.schedules order by id`.execute(db)
    return rows[0]?.id ?? ''
  }
})

test.each([null, ...OTHERS])(
  'a transaction in the scope %j neither reads nor removes a row of the project',
  async (scope) => {
    await using pipeline = await Pipeline.at(START)
    await fill(pipeline, CALLER)
    await passTwoSlots(pipeline)
    await pipeline.scheduler.deleteProject(CALLER)
    const before = await rowsOf(pipeline, CALLER)
    const { tenantId, projectId } = CALLER
    const { rows } = await sql<{ id: string }>`select id from carillon.schedules`.execute(pipeline.db)
    const [scheduleIds, portion] = [rows.map(({ id }) => id), { tenantId, projectId, limit: 10 }]
    const within = <Result>(work: (tx: Tx) => Promise<Result>) => transactScoped(pipeline.db, systemClock, scope, work)

    expect(await within((tx) => findPurgeObstacles(tx, portion))).toEqual({ hasSchedules: false, hasOpenRuns: false })
    expect(await within((tx) => lockRemovable(tx, { ...portion, rowsMax: 10 }))).toEqual([])
    const { counts, last } = await within((tx) => countScheduleRows(tx, { ...portion, after: null }))
    expect({ ...NO_ROWS, ...counts, ...(await within((tx) => countProjectRows(tx, portion))) }).toEqual(NO_ROWS)
    expect(last).toBeNull()
    for (const remove of [deleteGrants, deleteSecrets, deleteMembers, deleteIdempotentAnswers]) {
      expect(await within((tx) => remove(tx, portion)), remove.name).toBe(0)
    }
    for (const remove of [deleteRevisions, deleteBacklogs, deleteAttempts, deleteRuns, deleteChanges]) {
      for (const scheduleId of scheduleIds) {
        expect(await within((tx) => remove(tx, { ...portion, scheduleId })), remove.name).toBe(0)
      }
    }
    const whole = await within((tx) => deleteWhole(tx, { ...portion, scheduleIds }))
    expect({ ...NO_ROWS, ...whole }).toEqual(NO_ROWS)

    expect(await rowsOf(pipeline, CALLER)).toEqual(before)
  },
)
