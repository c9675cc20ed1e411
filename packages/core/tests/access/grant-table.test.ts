import { INSTALLATION_SUBJECT } from '@carillon/api'
import { expect, test, vi } from 'vitest'

import { Grants } from '../../src/access/grants.ts'
import { whenBlocked, whileHeld } from '../blocked-statement.ts'
import { countRows, emptiedPipelines } from '../emptied-pipeline.ts'
import { CALLER, EVERY_MINUTE, HOUR, MINUTE, Pipeline } from '../pipeline.ts'
import { ProcessClock } from '../process-clock.ts'
import { sql } from '../sql.ts'
import { listWaits } from '../waits.ts'

const pipelineAt = emptiedPipelines()
const START = '2026-03-02T09:00:30Z'

function grantsOf({ db, clock }: Pipeline): Grants {
  return new Grants({ db, clock })
}

/** A clock that advances by `stepMs` each time its database instant is read. */
class PassingClock extends ProcessClock {
  readonly #time: Pipeline['clock']
  stepMs = 0

  constructor(time: Pipeline['clock']) {
    super(time)
    this.#time = time
  }

  override databaseNow(): Date | null {
    this.#time.advance(this.stepMs)
    return super.databaseNow()
  }
}

/** Revokes a grant by SQL, without waiting for the lock of a schedule. */
async function revoke({ db, clock }: Pipeline, grantId: string): Promise<void> {
  await sql`
    update carillon.execution_grants set revoked_at = ${clock.databaseNow()}, revoked_by_subject = 'user:root'
    where id = ${grantId}`.execute(db)
}

/** Everything that a slot leaves behind if a permission check fails. */
async function refusedLine(pipeline: Pipeline, scheduleId: string) {
  const [run] = await pipeline.ledger({ id: scheduleId })
  const { attempts } = await pipeline.scheduler.getRun(CALLER, run?.id ?? '')
  const schedule = await pipeline.scheduler.get(CALLER, scheduleId)
  return {
    line: (await pipeline.lines({ id: scheduleId }))[0],
    attemptCount: run?.attemptCount,
    attempts: attempts.length,
    startedAt: run?.startedAt,
    calls: pipeline.target.calls.length,
    waits: (await listWaits(pipeline)).length,
    runCount: schedule.runCount,
    failures: schedule.consecutiveFailures,
    state: schedule.state,
    hasNextSlot: schedule.nextSlotAt === Date.parse('2026-03-02T09:02:00Z'),
  }
}

function refused(reason: string) {
  return {
    line: `09:01 skipped ${reason}`,
    attemptCount: 0,
    attempts: 0,
    startedAt: null,
    calls: 0,
    waits: 0,
    runCount: 0,
    failures: 1,
    state: 'active',
    hasNextSlot: true,
  }
}

/** Calls `between` after begin has checked the permission and before dispatch checks it again. */
async function betweenBeginAndDispatch(pipeline: Pipeline, between: () => Promise<void>): Promise<void> {
  const { database, clock } = pipeline
  // Begin reads the grant before it writes the line, and dispatch reads it after the commit. The trigger holds the write.
  await database.pool.query(`
    create function wait_to_write() returns trigger language plpgsql as $$
    begin
      perform pg_advisory_xact_lock(1);
      return null;
    end $$;
    create trigger wait_to_write before insert on carillon.runs for each statement execute function wait_to_write()`)
  const worker = pipeline.worker()
  clock.advance(MINUTE / 2)
  await worker.heartbeat.runOnce()
  const begun = Promise.withResolvers<unknown>()
  await whileHeld(pipeline, 'select pg_advisory_xact_lock(1)', async () => {
    begun.resolve(worker.loop.runOnce())
    await whenBlocked(pipeline)
    await between()
  })
  await begun.promise
  await worker.loop.whenIdle()
  await database.pool.query('drop function wait_to_write cascade')
}

test('a slot whose grant expires between begin and dispatch is skipped as grant_expired, not called, not charged (I8)', async () => {
  const pipeline = await pipelineAt(START)
  const grant = await grantsOf(pipeline).create(CALLER, {
    scopes: ['test:dispatch:bell'],
    // The worker looks at the agenda one second later, begins after another second, and dispatches after a third.
    expiresAt: Date.parse('2026-03-02T09:01:02.500Z'),
  })
  const schedule = await pipeline.create({ grantId: grant.id })
  const clock = new PassingClock(pipeline.clock)
  const worker = pipeline.worker('worker', 200, { clock })
  pipeline.clock.advance(MINUTE / 2)
  await worker.heartbeat.runOnce()

  clock.stepMs = 1000
  await worker.loop.runOnce()
  await worker.loop.whenIdle()

  expect(await refusedLine(pipeline, schedule.id)).toEqual(refused('grant_expired'))
})

test('a slot whose grant is revoked between begin and dispatch is skipped as grant_revoked, not called, not charged (I8)', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create()

  await betweenBeginAndDispatch(pipeline, () => revoke(pipeline, schedule.grantId))

  expect(await refusedLine(pipeline, schedule.id)).toEqual(refused('grant_revoked'))
})

test('a run whose grant is revoked while it waits for a retry fails with that reason and is not tried again', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const schedule = await pipeline.create({ policy: { startingDeadlineSeconds: 3600 } })
  pipeline.target.script = () => ({ kind: 'failed', error: { code: 'busy', message: 'busy' }, retryable: true })
  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()

  await grantsOf(pipeline).revoke(CALLER, schedule.grantId)
  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 failed grant_revoked'])
  const [run] = await pipeline.ledger(schedule)
  expect(run).toMatchObject({ attemptCount: 1 })
  expect(pipeline.target.calls).toHaveLength(1)
  expect(await listWaits(pipeline)).toEqual([])
  expect(await countRows(pipeline)).toMatchObject({ 'carillon.attempts': 1 })
})

test('a manual run whose grant is revoked before a worker takes it is skipped', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create()
  await pipeline.scheduler.runNow(CALLER, schedule.id)

  await grantsOf(pipeline).revoke(CALLER, schedule.grantId)
  await pipeline.worker().runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:00 skipped grant_revoked'])
  expect(pipeline.target.calls).toEqual([])
})

test('a schedule cannot act by the own grant of another schedule, whatever its scopes (I8)', async () => {
  const pipeline = await pipelineAt(START)
  const other = await pipeline.create({ name: 'other', cadence: { kind: 'once', at: '2027-01-01T00:00:00Z' } })
  const schedule = await pipeline.create()
  // By SQL, past every check of the scheduler, as a program with write access to the database could.
  await sql`update carillon.schedules set grant_id = ${other.grantId} where id = ${schedule.id}`.execute(pipeline.db)

  pipeline.clock.advance(MINUTE / 2)
  await pipeline.worker().runDue()

  expect(await refusedLine(pipeline, schedule.id)).toEqual(refused('grant_scope'))
})

test('a run that names a grant of another tenant does not find it and is skipped (I9)', async () => {
  await using pipeline = await Pipeline.at(START)
  const evil = { tenantId: 'evil', projectId: 'web', subject: 'user:mallory' }
  const theirs = await grantsOf(pipeline).create(evil, { scopes: ['test:dispatch:*'] })
  const schedule = await pipeline.create()
  // As a program with write access to the database could.
  await sql`update carillon.schedules set grant_id = ${theirs.id} where id = ${schedule.id}`.execute(pipeline.db)

  pipeline.clock.advance(MINUTE / 2)
  await pipeline.worker().runDue()

  expect((await sql`select state, reason from carillon.runs`.execute(pipeline.db)).rows[0]).toEqual({
    state: 'skipped',
    reason: 'grant_scope',
  })
  expect(pipeline.target.calls).toEqual([])
})

test('a slot whose grant was narrowed after scheduling is skipped as grant_scope at begin', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create()
  await narrow(pipeline, schedule.grantId)

  pipeline.clock.advance(MINUTE / 2)
  await pipeline.worker().runDue()

  expect(await refusedLine(pipeline, schedule.id)).toEqual(refused('grant_scope'))
})

test('a slot whose grant is narrowed between begin and dispatch is skipped as grant_scope', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create()

  await betweenBeginAndDispatch(pipeline, () => narrow(pipeline, schedule.grantId))

  expect(await refusedLine(pipeline, schedule.id)).toEqual(refused('grant_scope'))
})

test('a slot whose owner was removed from the project is skipped as access_lost at begin, before any dispatch', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const schedule = await pipeline.create()
  await removeMember(pipeline, CALLER.subject)
  const begun: unknown[] = []
  worker.events.on('run.began', (event) => begun.push(event))

  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()

  expect(await refusedLine(pipeline, schedule.id)).toEqual(refused('access_lost'))
  expect(begun).toEqual([])
})

test.each(['at begin', 'between begin and dispatch'])(
  'a slot whose grant belongs to a member that is removed %s is skipped as access_lost, though the owner is a member',
  async (when) => {
    const pipeline = await pipelineAt(START)
    const grant = await grantsOf(pipeline).create(CALLER, { subject: 'user:carol', scopes: ['test:dispatch:*'] })
    const schedule = await pipeline.create({ grantId: grant.id })
    if (when === 'at begin') {
      await removeMember(pipeline, 'user:carol')
      pipeline.clock.advance(MINUTE / 2)
      await pipeline.worker().runDue()
    } else {
      await betweenBeginAndDispatch(pipeline, () => removeMember(pipeline, 'user:carol'))
    }

    expect(await refusedLine(pipeline, schedule.id)).toEqual(refused('access_lost'))
  },
)

test('a manual run for a removed owner is rejected, and nothing is written', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create()
  await removeMember(pipeline, CALLER.subject)
  const before = await countRows(pipeline)

  await expect(pipeline.scheduler.runNow(CALLER, schedule.id)).rejects.toMatchObject({
    code: 'grant_invalid',
    message: expect.stringContaining('user:alice, a removed member') as string,
  })
  expect(await countRows(pipeline)).toEqual(before)
})

test('a slot whose owner is removed between begin and dispatch is skipped as access_lost', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create()

  await betweenBeginAndDispatch(pipeline, () => removeMember(pipeline, CALLER.subject))

  expect(await refusedLine(pipeline, schedule.id)).toEqual(refused('access_lost'))
})

test('a slot that an external authorization denies is skipped as access_lost; the request names the owner and the project', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create()
  const asked: unknown[] = []
  const authorization = {
    isAllowed: (request: unknown) => {
      asked.push(request)
      return Promise.resolve(false)
    },
  }

  pipeline.clock.advance(MINUTE / 2)
  await pipeline.worker('worker', 200, { authorization }).runDue()

  expect(await refusedLine(pipeline, schedule.id)).toEqual(refused('access_lost'))
  expect(asked).toEqual([{ tenantId: 'acme', projectId: 'web', subject: 'user:alice', role: 'member' }])
})

test('an external authorization is not asked about the installation itself, which is a member of no project', async () => {
  const pipeline = await pipelineAt(START)
  const caller = { ...CALLER, subject: INSTALLATION_SUBJECT }
  const schedule = await pipeline.scheduler.create(caller, EVERY_MINUTE)
  const authorization = { isAllowed: () => Promise.resolve(false) }

  pipeline.clock.advance(MINUTE / 2)
  await pipeline.worker('worker', 200, { authorization }).runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 succeeded'])
})

test.each([INSTALLATION_SUBJECT, 'system:carillon'])(
  'a caller cannot name %s, neither as an owner nor as the subject of a grant',
  async (subject) => {
    const pipeline = await pipelineAt(START)

    await expect(pipeline.create({ ownerSubject: subject })).rejects.toMatchObject({
      problems: [{ path: 'ownerSubject' }],
    })
    const grant = grantsOf(pipeline).create(CALLER, { subject, scopes: ['test:dispatch:*'] })
    await expect(grant).rejects.toMatchObject({ problems: [{ path: 'subject' }] })
  },
)

test('if an external authorization cannot be reached, the target is not called and the attempt is retried (fails closed)', async () => {
  const pipeline = await pipelineAt(START)
  const schedule = await pipeline.create()
  const authorization = { isAllowed: () => Promise.reject(new Error('connection refused')) }
  const worker = pipeline.worker('worker', 200, { authorization })

  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 retrying'])
  const [run] = await pipeline.ledger(schedule)
  expect(run?.error).toMatchObject({ code: 'rights_unknown' })
  expect(pipeline.target.calls).toEqual([])
})

test.each([
  ['60 s ahead', 60_000],
  ['60 s behind', -60_000],
])('a worker whose own clock is %s decides by the clock of Postgres, to the millisecond', async (_what, skewMs) => {
  const pipeline = await pipelineAt(START)
  const grants = grantsOf(pipeline)
  const expiring = (at: string) => grants.create(CALLER, { scopes: ['test:dispatch:bell'], expiresAt: Date.parse(at) })
  const lasting = await pipeline.create({ grantId: (await expiring('2026-03-02T09:01:00.001Z')).id })
  const ended = await pipeline.create({ grantId: (await expiring('2026-03-02T09:01:00Z')).id })
  const worker = pipeline.worker()
  // The clock of this worker's machine. No part of the pipeline may use it.
  vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2026-03-02T09:01:00Z') + skewMs })
  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()
  vi.useRealTimers()

  expect(await pipeline.lines(lasting)).toEqual(['09:01 succeeded'])
  expect(await pipeline.lines(ended)).toEqual(['09:01 skipped grant_expired'])
})

test('a slot that the check before the call skips counts toward auto-pause like one that begin skips', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker('worker', 200, { authorization: { isAllowed: () => Promise.resolve(false) } })
  const schedule = await pipeline.create({ policy: { autoPauseThreshold: 3 } })

  for (let slot = 0; slot < 4; slot += 1) {
    pipeline.clock.advance(MINUTE)
    await worker.runDue()
  }

  expect(await pipeline.lines(schedule)).toEqual([
    '09:01 skipped access_lost',
    '09:02 skipped access_lost',
    '09:03 skipped access_lost',
  ])
  expect(await pipeline.scheduler.get(CALLER, schedule.id)).toMatchObject({
    state: 'paused',
    pausedReason: 'auto:consecutive_failures',
    runCount: 0,
    failureCount: 0,
  })
})

test('a target receives the grant of the call, with its subject and the account that pays (I8)', async () => {
  const pipeline = await pipelineAt(START)
  const grant = await grantsOf(pipeline).create(CALLER, {
    subject: 'service:billing',
    scopes: ['test:dispatch:*'],
    billingAccountId: 'account-7',
  })
  await pipeline.create({ grantId: grant.id })

  pipeline.clock.advance(MINUTE / 2)
  await pipeline.worker().runDue()

  expect(pipeline.target.calls[0]?.grant).toEqual({
    id: grant.id,
    subject: 'service:billing',
    billingAccountId: 'account-7',
  })
})

test('a renewed grant permits the next slot, even if the grant had expired', async () => {
  const pipeline = await pipelineAt(START)
  const worker = pipeline.worker()
  const grants = grantsOf(pipeline)
  const grant = await grants.create(CALLER, {
    scopes: ['test:dispatch:bell'],
    expiresAt: Date.parse('2026-03-02T09:01:00Z'),
  })
  const schedule = await pipeline.create({ grantId: grant.id })
  pipeline.clock.advance(MINUTE / 2)
  await worker.runDue()

  await grants.renew(CALLER, grant.id, { expiresAt: Date.parse(START) + HOUR })
  pipeline.clock.advance(MINUTE)
  await worker.runDue()

  expect(await pipeline.lines(schedule)).toEqual(['09:01 skipped grant_expired', '09:02 succeeded'])
})

async function narrow({ db }: Pipeline, grantId: string): Promise<void> {
  await sql`update carillon.execution_grants set scopes = '{test:dispatch:other}' where id = ${grantId}`.execute(db)
}

async function removeMember({ db }: Pipeline, subject: string): Promise<void> {
  const { tenantId, projectId } = CALLER
  await sql`
    insert into carillon.members (
      tenant_id, project_id, subject, role, added_by_subject, added_at, removed_by_subject, removed_at
    )
    values (${tenantId}, ${projectId}, ${subject}, 'admin', 'user:root', now(), 'user:root', now())`.execute(db)
}

test('a permission check that fails right after the commit of begin is repeated, so no run is lost (I6, I8)', async () => {
  const pipeline = await pipelineAt(START)
  const { database, clock } = pipeline
  const schedule = await pipeline.create()
  // The first permission check of each transaction fails. Begin does not read this table otherwise.
  await database.pool.query('alter table carillon.tenants rename to hidden')
  const worker = pipeline.worker()
  clock.advance(MINUTE / 2)
  await worker.heartbeat.runOnce()

  await worker.loop.runOnce()
  await database.pool.query('alter table carillon.hidden rename to tenants')
  await worker.loop.whenIdle()

  const [run] = await pipeline.ledger(schedule)
  expect(['succeeded', 'retrying']).toContain(run?.state)
})
