import pg from 'pg'
import { describe, expect, test } from 'vitest'

import { migrateDown } from '../../src/db/migrate.ts'
import { dropPartitions, listPartitions } from '../../src/db/months.ts'
import { createPool } from '../../src/db/pool.ts'
import { Doctor } from '../../src/doctor/doctor.ts'
import { Events } from '../../src/kernel/events.ts'
import { countWork } from '../../src/maintenance/store/gauges.ts'
import type { Scheduler } from '../../src/scheduler.ts'
import { Worker } from '../../src/worker.ts'
import { whileHeld } from '../blocked-statement.ts'
import { emptiedPipelines } from '../emptied-pipeline.ts'
import { changeAndDie, finish, PORTION, RETENTION_MS, schedulerOn, writerOf } from '../left-backlog.ts'
import { ManualClock } from '../manual-clock.ts'
import { ANY_NUMBER, CALLER, DAY, MINUTE, Pipeline } from '../pipeline.ts'
import { recordingDb, watchedDb } from '../query-plan.ts'
import { sql } from '../sql.ts'
import { TestAuditor } from '../test-auditor.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'
const FIRST_SLOT = Date.parse('2026-03-02T09:01:00Z')
/** The number of missed slots: more than two portions. */
const MISSED = 2500
const AT_NOON = { kind: 'cron', expression: '0 12 * * *', timezone: 'UTC' }
const HOLIDAYS = { reason: 'holidays' }

type Change = (scheduler: Scheduler, id: string) => Promise<unknown>

const pause: Change = (scheduler, id) => scheduler.pause(CALLER, id, HOLIDAYS)
const edit: Change = (scheduler, id) => scheduler.edit(CALLER, id, { cadence: AT_NOON }, { revision: 1 })
const remove: Change = (scheduler, id) => scheduler.delete(CALLER, id)
const removeAll: Change = (scheduler) => scheduler.deleteProject(CALLER)

interface Line {
  slot: number
  state: string
  reason: string | null
  revision: number
}

async function ledger({ db }: Pipeline): Promise<Line[]> {
  const { rows } = await sql<Omit<Line, 'slot'> & { scheduled_for: Date }>`
    select scheduled_for, state, reason, revision from carillon.runs order by scheduled_for, schedule_id`.execute(db)
  return rows.map(({ scheduled_for, ...line }) => ({ slot: scheduled_for.getTime(), ...line }))
}

/** The expected lines: one for each minute from the first slot on. */
function linesFor(minutes: number, reason: string): Line[] {
  return Array.from({ length: minutes }, (_, index) => ({
    slot: FIRST_SLOT + index * MINUTE,
    state: 'skipped',
    reason,
    revision: 1,
  }))
}

async function read<Row extends object>({ db }: Pick<Pipeline, 'db'>, query: string): Promise<Row[]> {
  const { rows } = await sql.raw<Row>(query).execute(db)
  return rows
}

async function countBacklogs(pipeline: Pipeline): Promise<number> {
  return (await read(pipeline, 'select from carillon.slot_backlogs')).length
}

/** The number of lines that each transaction has written, in ascending order. */
async function linesPerTransaction(pipeline: Pipeline): Promise<number[]> {
  const rows = await read<{ lines: number }>(
    pipeline,
    'select count(*)::int as lines from carillon.runs group by xmin::text order by 1',
  )
  return rows.map(({ lines }) => lines)
}

/** A clock that advances by 50 ms each time it is read, as on a slow machine. */
class SlowClock extends ManualClock {
  #spentMs = 0

  override monotonicMs(): number {
    this.#spentMs += 50
    return this.#spentMs
  }
}

describe('a project of 50 schedules that is deleted after an outage of three days', () => {
  const SCHEDULES = 50
  const EVERY_TEN_MINUTES = { kind: 'cron', expression: '*/10 * * * *', timezone: 'UTC' }
  const SLOTS_EACH = 3 * 24 * 6
  const SLOTS = SCHEDULES * SLOTS_EACH

  async function outage(): Promise<Pipeline> {
    const pipeline = await pipelineAt(START, ANY_NUMBER)
    for (let index = 0; index < SCHEDULES; index += 1) {
      await pipeline.create({ name: `${index}`, cadence: EVERY_TEN_MINUTES })
    }
    pipeline.clock.advance(3 * DAY)
    return pipeline
  }

  test('the lines of missed slots are written in portions, each in its own transaction, and each slot has one line', async () => {
    const pipeline = await outage()

    expect(await pipeline.scheduler.deleteProject(CALLER)).toEqual({ deleted: SCHEDULES })

    const lines = await linesPerTransaction(pipeline)
    expect(lines.reduce((sum, count) => sum + count, 0)).toBe(SLOTS)
    expect(Math.max(...lines)).toBe(PORTION)
    const perSchedule = await read(
      pipeline,
      `select distinct count(*)::int as lines, count(distinct scheduled_for)::int as slots, min(scheduled_for) as first,
         max(scheduled_for) as last, min(reason) as least, max(reason) as most
       from carillon.runs group by schedule_id`,
    )
    expect(perSchedule).toEqual([
      {
        lines: SLOTS_EACH,
        slots: SLOTS_EACH,
        first: new Date('2026-03-02T09:10:00Z'),
        last: new Date('2026-03-05T09:00:00Z'),
        least: 'superseded',
        most: 'superseded',
      },
    ])
    expect(await countBacklogs(pipeline)).toBe(0)

    // The deletion itself is one transaction, with one portion of lines.
    const [deletion, ...others] = await read<{ xact: string; schedules: number }>(
      pipeline,
      `select xmin::text as xact, count(*)::int as schedules from carillon.schedules where state = 'deleted' group by 1`,
    )
    expect(deletion?.schedules).toBe(SCHEDULES)
    expect(others).toEqual([])
    const inIt = await read(
      pipeline,
      `select (select count(*)::int from carillon.schedule_changes where change = 'deleted' and xmin::text = '${deletion?.xact}')
           as changes,
         (select count(*)::int from carillon.runs where xmin::text = '${deletion?.xact}') as lines`,
    )
    expect(inIt).toEqual([{ changes: SCHEDULES, lines: PORTION }])
  })

  test('between portions no row is locked, all schedules are deleted, and each slot has a line or is in a backlog (I6)', async () => {
    const pipeline = await outage()
    const other = new pg.Client({ connectionString: pipeline.database.url })
    await other.connect()
    const seen: unknown[] = []
    const db = watchedDb(pipeline.database.pool, async (query) => {
      if (query.text !== 'commit') return
      await other.query(
        'begin; select from carillon.schedules for update nowait; select from carillon.slot_backlogs for update nowait; rollback',
      )
      const { rows } = await other.query(
        `select count(*) filter (where state <> 'deleted')::int as living,
           (select count(*)::int from carillon.runs)
           + (select coalesce(sum(floor(extract(epoch from until - next_slot_at) / 600) + 1), 0)::int from carillon.slot_backlogs)
             as slots
         from carillon.schedules`,
      )
      seen.push(rows[0])
    })

    await schedulerOn(db, pipeline).deleteProject(CALLER)

    await other.end()
    expect(seen.length).toBeGreaterThan(SLOTS / PORTION)
    expect(seen).toEqual(seen.map(() => ({ living: 0, slots: SLOTS })))
  })
})

describe.each([
  { what: 'a pause', reason: 'paused', change: pause },
  { what: 'an edit of the cadence', reason: 'superseded', change: edit },
  { what: 'a deletion', reason: 'superseded', change: remove },
  { what: 'a deletion of the project', reason: 'superseded', change: removeAll },
])('if the server dies right after the commit of $what', ({ reason, change }) => {
  async function setup() {
    const pipeline = await pipelineAt(START, ANY_NUMBER)
    const { id } = await pipeline.create()
    pipeline.clock.advance(MISSED * MINUTE)
    await changeAndDie(pipeline, (scheduler) => change(scheduler, id))
    return { pipeline }
  }

  test('a worker writes each remaining line once, in portions (I2, I6)', async () => {
    const { pipeline } = await setup()
    expect(await ledger(pipeline)).toEqual(linesFor(PORTION, reason))

    const lines = await finish(writerOf(pipeline))

    expect(lines).toBe(MISSED - PORTION)
    expect(await ledger(pipeline)).toEqual(linesFor(MISSED, reason))
    expect(await linesPerTransaction(pipeline)).toEqual([500, PORTION, PORTION])
    expect(await countBacklogs(pipeline)).toBe(0)
  })

  test('no worker runs a slot of the backlog', async () => {
    const { pipeline } = await setup()

    await pipeline.worker().runDue()
    await finish(writerOf(pipeline))
    await pipeline.worker().runDue()

    expect(pipeline.target.calls).toEqual([])
    expect(await ledger(pipeline)).toEqual(linesFor(MISSED, reason))
  })

  test('an audit does not report slots of the backlog as lost', async () => {
    const { pipeline } = await setup()
    const { workerDb: db, clock, events } = pipeline
    const auditor = new TestAuditor({ db, clock, events }, { windowMs: 3 * DAY })

    const before = await auditor.audit()
    await finish(writerOf(pipeline))
    const after = await auditor.audit()

    expect(before).toMatchObject({ slots: MISSED, findings: { slot_lost: 0, slot_unknown: 0 }, repaired: 0 })
    expect(after).toMatchObject({ slots: MISSED, findings: { slot_lost: 0, slot_unknown: 0 }, repaired: 0 })
    expect(await ledger(pipeline)).toEqual(linesFor(MISSED, reason))
  })

  test('an audit reports slots of the backlog as lost after an hour without their lines', async () => {
    const { pipeline } = await setup()
    const { workerDb: db, clock, events } = pipeline
    const auditor = new TestAuditor({ db, clock, events })
    clock.advance(60 * MINUTE)

    expect((await auditor.audit()).findings.slot_lost).toBe(MISSED - PORTION)
    expect((await auditor.audit()).findings.slot_lost).toBe(0)
  })
})

describe('while a backlog is being written', () => {
  async function paused() {
    const pipeline = await pipelineAt(START, ANY_NUMBER)
    const schedule = await pipeline.create()
    pipeline.clock.advance(MISSED * MINUTE)
    await changeAndDie(pipeline, (scheduler) => pause(scheduler, schedule.id))
    return { pipeline, schedule }
  }

  test('a resumed schedule runs its next slot, and each slot has one line', async () => {
    const { pipeline, schedule } = await paused()

    await pipeline.scheduler.resume(CALLER, schedule.id)
    pipeline.clock.advance(MINUTE)
    await pipeline.worker().runDue()
    await finish(writerOf(pipeline))

    expect(await ledger(pipeline)).toEqual([
      ...linesFor(MISSED, 'paused'),
      { slot: FIRST_SLOT + MISSED * MINUTE, state: 'succeeded', reason: null, revision: 1 },
    ])
  })

  test('a schedule that is resumed and edited leaves a second backlog, and each line has the reason of its own backlog', async () => {
    const { pipeline, schedule } = await paused()
    await pipeline.scheduler.resume(CALLER, schedule.id)
    pipeline.clock.advance(MISSED * MINUTE)

    await changeAndDie(pipeline, (scheduler) => edit(scheduler, schedule.id))
    expect(await countBacklogs(pipeline)).toBe(2)
    await finish(writerOf(pipeline))

    const lines = await ledger(pipeline)
    expect(lines.map(({ slot }) => slot)).toEqual(linesFor(2 * MISSED, '').map(({ slot }) => slot))
    expect(lines.map(({ reason }) => reason)).toEqual([
      ...linesFor(MISSED, 'paused').map(({ reason }) => reason),
      ...linesFor(MISSED, 'superseded').map(({ reason }) => reason),
    ])
  })

  test('a deletion does not change the backlog of an earlier pause', async () => {
    const { pipeline, schedule } = await paused()

    await pipeline.scheduler.delete(CALLER, schedule.id)
    await finish(writerOf(pipeline))

    expect(await ledger(pipeline)).toEqual(linesFor(MISSED, 'paused'))
  })

  test('if a cadence is edited and edited back, each slot gets its line under the revision for which it was due', async () => {
    const pipeline = await pipelineAt(START, ANY_NUMBER)
    const { id, cadence } = await pipeline.create()
    pipeline.clock.advance(MISSED * MINUTE)
    await changeAndDie(pipeline, (scheduler) => edit(scheduler, id))

    await pipeline.scheduler.edit(CALLER, id, { cadence }, { revision: 2 })
    pipeline.clock.advance(MINUTE)
    await pipeline.worker().runDue()
    await finish(writerOf(pipeline))

    expect(await ledger(pipeline)).toEqual([
      ...linesFor(MISSED, 'superseded'),
      { slot: FIRST_SLOT + MISSED * MINUTE, state: 'succeeded', reason: null, revision: 3 },
    ])
  })
})

describe('workers that write a backlog', () => {
  const SCHEDULES = 5

  async function setup() {
    const pipeline = await pipelineAt(START, ANY_NUMBER)
    for (let index = 0; index < SCHEDULES; index += 1) await pipeline.create({ name: `${index}` })
    pipeline.clock.advance(MISSED * MINUTE)
    await changeAndDie(pipeline, (scheduler) => scheduler.deleteProject(CALLER))
    return pipeline
  }

  test('two workers share a backlog and write every line once', async () => {
    const pipeline = await setup()

    const written = await Promise.all([finish(writerOf(pipeline)), finish(writerOf(pipeline))])

    expect(written[0] + written[1]).toBe(SCHEDULES * MISSED - PORTION)
    expect(await ledger(pipeline)).toHaveLength(SCHEDULES * MISSED)
    expect(Math.max(...(await linesPerTransaction(pipeline)))).toBe(PORTION)
    expect(await countBacklogs(pipeline)).toBe(0)
  })

  test('a writer does not repeat lines that another writer has written since it read the backlogs', async () => {
    const pipeline = await setup()
    let isAwaited = false
    const db = watchedDb(pipeline.database.pool, async (query) => {
      if (isAwaited || !query.text.includes('from slot_backlogs')) return
      isAwaited = true
      await finish(writerOf(pipeline))
    })

    expect(await writerOf(pipeline, db).runOnce()).toEqual({ lines: 0 })

    expect(await ledger(pipeline)).toHaveLength(SCHEDULES * MISSED)
  })

  test('a writer skips a schedule that another transaction has locked, and writes its lines later', async () => {
    const pipeline = await setup()
    const writer = writerOf(pipeline)
    const [held] = await read<{ id: string }>(
      pipeline,
      'select max(schedule_id::text) as id from carillon.slot_backlogs',
    )

    await whileHeld(pipeline, `select from carillon.schedules where id = '${held?.id}' for update`, async () => {
      expect(await finish(writer)).toBe((SCHEDULES - 1) * MISSED - PORTION)
    })

    expect(await finish(writer)).toBe(MISSED)
    expect(await countBacklogs(pipeline)).toBe(0)
  })

  test('a backlog whose lines cannot be written does not hold up the other backlogs', async () => {
    const pipeline = await setup()
    const writer = writerOf(pipeline)
    const [broken] = await read<{ id: string }>(
      pipeline,
      'select min(schedule_id::text) as id from carillon.slot_backlogs',
    )
    await read(
      pipeline,
      `create function public.refuse() returns trigger language plpgsql as $$begin raise exception 'rejected by the test'; end$$;
       create trigger refuse before insert on carillon.runs for each row when (new.schedule_id = '${broken?.id}')
         execute function public.refuse()`,
    )

    const expectRejection = async () => expect(writer.runOnce()).rejects.toThrow('rejected by the test')
    await expectRejection()
    expect(await ledger(pipeline)).toHaveLength(PORTION)
    await expectRejection()
    expect(await ledger(pipeline)).toHaveLength(PORTION + (SCHEDULES - 1) * PORTION)

    await read(pipeline, 'drop function public.refuse() cascade')
    await finish(writer)
    expect(await ledger(pipeline)).toHaveLength(SCHEDULES * MISSED)
  })

  test('a short backlog is written even if it shares a portion with one whose lines cannot be written', async () => {
    const pipeline = await setup()
    const writer = writerOf(pipeline)
    await finish(writer)
    const [broken] = await read<{ id: string }>(pipeline, 'select min(id::text) as id from carillon.schedules')
    // Backlogs as a change leaves them: each schedule lacks three lines.
    await read(
      pipeline,
      `with lines as (
         delete from carillon.runs
         where (schedule_id, scheduled_for) in (
           select schedule_id, scheduled_for
           from (select *, row_number() over (partition by schedule_id order by scheduled_for desc) as number from carillon.runs) as line
           where number <= 3
         )
         returning *
       )
       insert into carillon.slot_backlogs (schedule_id, revision, until, tenant_id, project_id, next_slot_at, reason, made_at)
       select schedule_id, max(revision), max(scheduled_for), max(tenant_id), max(project_id), min(scheduled_for), max(reason), now()
       from lines
       group by schedule_id;
       create function public.refuse() returns trigger language plpgsql as $$begin raise exception 'rejected by the test'; end$$;
       create trigger refuse before insert on carillon.runs for each row when (new.schedule_id = '${broken?.id}')
         execute function public.refuse()`,
    )

    await expect(writer.runOnce()).rejects.toThrow('rejected by the test')

    expect(await countBacklogs(pipeline)).toBe(1)
    expect(await ledger(pipeline)).toHaveLength(SCHEDULES * MISSED - 3)
    await read(pipeline, 'drop function public.refuse() cascade')
  })

  test('the metrics and the doctor report the age of the oldest backlog', async () => {
    const pipeline = await setup()
    const { clock, workerDb, database } = pipeline
    clock.advance(6 * MINUTE)

    expect(await countWork(workerDb, { now: clock.databaseNow() })).toMatchObject({ backlogAgeSeconds: 360 })
    const checks = await new Doctor({ pool: database.pool, clock }).examine()
    expect(checks.find(({ name }) => name === 'runs')).toMatchObject({
      status: 'warning',
      message: expect.stringContaining('have waited for their lines for 6 min') as string,
    })
    await finish(writerOf(pipeline))
    expect(await countWork(workerDb, { now: clock.databaseNow() })).toMatchObject({ backlogAgeSeconds: 0 })
  })

  test('a running worker writes backlogs', async () => {
    const pipeline = await setup()
    const { database, clock, target } = pipeline

    await using worker = new Worker({ databaseUrl: database.url, targets: [target], clock })
    await worker.start()

    // The writer runs only once, because the clock stands still.
    while ((await ledger(pipeline)).length < 11 * PORTION);
    expect(await ledger(pipeline)).toHaveLength(11 * PORTION)
  })

  test('a writer sends only one statement if there is no backlog', async () => {
    const pipeline = await pipelineAt(START)
    const pool = createPool({ connectionString: pipeline.database.url, role: 'carillon_worker' })
    const { db, queries } = recordingDb(pool)

    expect(await writerOf(pipeline, db).runOnce()).toEqual({ lines: 0 })

    expect(queries).toHaveLength(1)
    await db.close()
  })

  test('a writer writes ten portions at a time at most', async () => {
    const pipeline = await setup()

    expect(await writerOf(pipeline).runOnce()).toEqual({ lines: 10 * PORTION })
  })

  test('a server writes the backlog of its own change for three seconds, and leaves the rest to workers', async () => {
    const pipeline = await pipelineAt(START, ANY_NUMBER)
    for (let index = 0; index < SCHEDULES; index += 1) await pipeline.create({ name: `${index}` })
    pipeline.clock.advance(MISSED * MINUTE)
    let commits = 0
    const db = watchedDb(pipeline.database.pool, (query) => {
      // The first commit is that of the deletion.
      if (query.text === 'commit' && (commits += 1) > 1) pipeline.clock.advance(1000)
    })

    await schedulerOn(db, pipeline).deleteProject(CALLER)

    expect(commits).toBe(4)
    expect(await countBacklogs(pipeline)).toBeGreaterThan(0)
    await finish(writerOf(pipeline))
    expect(await ledger(pipeline)).toHaveLength(SCHEDULES * MISSED)
  })

  test('a change succeeds although the server cannot write its backlog: the failure is emitted, and a worker writes it', async () => {
    const pipeline = await pipelineAt(START, ANY_NUMBER)
    const { id } = await pipeline.create()
    pipeline.clock.advance(MISSED * MINUTE)
    const events = new Events()
    const emitted: unknown[] = []
    events.on('service.failed', (event) => emitted.push(event))
    const error = new Error('interrupted by the test')
    const db = watchedDb(pipeline.database.pool, (query) => {
      if (query.text.includes('update slot_backlogs')) throw error
    })

    const paused = await schedulerOn(db, pipeline, events).pause(CALLER, id, HOLIDAYS)

    expect(paused).toMatchObject({ state: 'paused' })
    expect(emitted).toEqual([{ service: 'backlog writer', error }])
    expect(await finish(writerOf(pipeline))).toBe(MISSED - PORTION)
  })
})

describe('the lines of a backlog', () => {
  async function setup(input: object = {}) {
    const pipeline = await pipelineAt(START, ANY_NUMBER)
    const schedule = await pipeline.create(input)
    const pauseAndDie = () => changeAndDie(pipeline, (scheduler) => pause(scheduler, schedule.id))
    return { pipeline, schedule, pauseAndDie }
  }

  test('the line of an excluded slot says excluded, whether the server or a worker writes it', async () => {
    const { pipeline, schedule, pauseAndDie } = await setup()
    const excluded = [FIRST_SLOT + MINUTE, FIRST_SLOT + (PORTION + 3) * MINUTE, FIRST_SLOT + MISSED * MINUTE]
    for (const slot of excluded) await pipeline.scheduler.skip(CALLER, schedule.id, slot)
    pipeline.clock.advance(MISSED * MINUTE)

    await pauseAndDie()
    await finish(writerOf(pipeline))

    const lines = await ledger(pipeline)
    expect(lines).toHaveLength(MISSED)
    expect(lines.filter(({ reason }) => reason === 'excluded').map(({ slot }) => slot)).toEqual(excluded.slice(0, 2))
  })

  test('a schedule with a spread gets lines for the slots that had come due at the change, and for no later ones', async () => {
    const { pipeline, schedule, pauseAndDie } = await setup({ policy: { spreadSeconds: 59 } })
    const offset = (schedule.dueAt ?? 0) - (schedule.nextSlotAt ?? 0)
    pipeline.clock.advance(MISSED * MINUTE)
    const slots = Math.floor((pipeline.clock.instant - FIRST_SLOT - offset) / MINUTE) + 1

    await pauseAndDie()
    await finish(writerOf(pipeline))

    expect(offset).toBeGreaterThan(0)
    expect(await ledger(pipeline)).toEqual(linesFor(slots, 'paused'))
  })

  test('slots that are older than the retention when they are written get no line', async () => {
    const { pipeline, pauseAndDie } = await setup()
    pipeline.clock.advance(MISSED * MINUTE)
    await pauseAndDie()
    pipeline.clock.advance(RETENTION_MS - 500 * MINUTE)

    expect(await finish(writerOf(pipeline))).toBe(500)

    expect((await ledger(pipeline)).slice(PORTION)).toEqual(linesFor(MISSED, 'paused').slice(MISSED - 500))
    expect(await countBacklogs(pipeline)).toBe(0)
  })

  test('if the cadence can no longer be read, only the one stored slot gets its line', async () => {
    const { pipeline, pauseAndDie } = await setup()
    pipeline.clock.advance(MISSED * MINUTE)
    await pauseAndDie()
    await read(pipeline, `update carillon.schedule_revisions set cadence_cron = '{"kind":"cron"}'`)

    expect(await finish(writerOf(pipeline))).toBe(1)

    expect(await ledger(pipeline)).toEqual(linesFor(PORTION + 1, 'paused'))
    expect(await countBacklogs(pipeline)).toBe(0)
  })

  test('a writer creates the months that are missing', async () => {
    await using pipeline = await Pipeline.at(START, undefined, ANY_NUMBER)
    const { id } = await pipeline.create()
    pipeline.clock.advance(MISSED * MINUTE)
    await changeAndDie(pipeline, (scheduler) => pause(scheduler, id))
    await dropPartitions(pipeline.workerDb, { before: new Date('2027-01-01T00:00:00Z') })

    expect(await finish(writerOf(pipeline))).toBe(MISSED - PORTION)

    expect((await listPartitions(pipeline.db)).map(({ name }) => name)).toContain('runs_2026_03')
  })

  test('a change with no more slots than a portion leaves no backlog', async () => {
    const { pipeline, schedule } = await setup()
    pipeline.clock.advance(PORTION * MINUTE)
    const { db, queries } = recordingDb(pipeline.database.pool)

    await schedulerOn(db, pipeline).delete(CALLER, schedule.id)

    expect(queries.filter((query) => query.text.includes('slot_backlogs'))).toEqual([])
    expect(await ledger(pipeline)).toEqual(linesFor(PORTION, 'superseded'))
  })

  test('a change that has computed slots for 50 ms leaves the rest for after its commit (I14)', async () => {
    const { pipeline, schedule } = await setup()
    pipeline.clock.advance(10 * MINUTE)
    const { database, targets } = pipeline
    const clock = new SlowClock(pipeline.clock.instant)

    await changeAndDie({ database, targets, clock }, (scheduler) => pause(scheduler, schedule.id))

    expect(await ledger(pipeline)).toEqual([])
    await finish(writerOf(pipeline))
    expect(await ledger(pipeline)).toEqual(linesFor(10, 'paused'))
  })

  test('an edit that keeps the cadence writes no line for due slots', async () => {
    const { pipeline, schedule } = await setup()
    pipeline.clock.advance(MISSED * MINUTE)

    await pipeline.scheduler.edit(CALLER, schedule.id, { name: 'renamed' }, { revision: 1 })

    expect(await ledger(pipeline)).toEqual([])
    expect(await countBacklogs(pipeline)).toBe(0)
  })

  test('migrating down is refused while lines are still to be written (I6)', async () => {
    const { pipeline, pauseAndDie } = await setup()
    pipeline.clock.advance(MISSED * MINUTE)
    await pauseAndDie()

    await expect(migrateDown(pipeline.database.pool, { to: 7 })).rejects.toThrow('wait in carillon.slot_backlogs')
  })
})
