import { createServer } from 'node:net'

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { Secrets } from '../../src/access/secrets.ts'
import { createPool } from '../../src/db/pool.ts'
import type { Check } from '../../src/doctor/checks.ts'
import { Doctor } from '../../src/doctor/doctor.ts'
import type { Clock } from '../../src/kernel/clock.ts'
import { TZDATA_VERSION, VERSION } from '../../src/kernel/version.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { CALLER, DAY, HOUR, MINUTE, Pipeline } from '../pipeline.ts'
import { FAIL } from '../scripted-target.ts'
import { sql } from '../sql.ts'
import { TestAuditor } from '../test-auditor.ts'

const NAMES = ['database', 'schema', 'clock', 'tzdata', 'workers', 'runs', 'services', 'audit']

let database: TestDatabase
let pipeline: Pipeline

beforeAll(async () => {
  database = await createDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())
afterEach(() => pipeline.workerDb.close())
beforeEach(async () => {
  pipeline = await Pipeline.at('2026-11-14T09:00:00Z', database)
  const tables = [
    'transcripts',
    'attempts',
    'runs',
    'slot_backlogs',
    'schedule_changes',
    'schedule_revisions',
    'schedules',
    'execution_grants',
  ]
  for (const table of [...tables, 'workers', 'audits', 'secrets', 'service_turns']) {
    await sql`delete from ${sql.id('carillon', table)}`.execute(pipeline.db)
  }
})

function statuses(checks: readonly Check[]): string[] {
  return checks.map(({ name, status }) => `${name} ${status}`)
}

/** A doctor whose clocks stand still, so that no check depends on how busy the machine is. */
function doctor({ pool }: Pick<TestDatabase, 'pool'> = database, aheadMs = 0): Doctor {
  const { clock } = pipeline
  return new Doctor({ pool, clock, machineNow: () => clock.instant + aheadMs })
}

async function check(name: Check['name'], aheadMs = 0): Promise<Check> {
  const checks = await doctor(database, aheadMs).examine()
  expect(checks.map((found) => found.name)).toEqual(NAMES)
  const found = checks.find((one) => one.name === name)
  if (found === undefined) throw new Error(`expected a check of ${name}, got none`)
  return found
}

test('every check of a fresh database is ok', async () => {
  expect(statuses(await doctor().examine())).toEqual(NAMES.map((name) => `${name} ok`))
})

test('with real clocks the doctor reports the server’s version, its response time and the skew of its clock', async () => {
  const [first, , third] = await new Doctor({ pool: database.pool }).examine()

  expect(first?.message).toMatch(/^Postgres \d+\.\d+.* answered in \d+ ms/)
  expect(third?.message).toMatch(/^this machine's clock is \d+ ms (ahead of|behind) the database's$/)
})

test('a database that cannot be reached is the only thing reported', async () => {
  const pool = createPool({ connectionString: 'postgres://nobody@127.0.0.1:1/nowhere' })

  expect(await new Doctor({ pool }).examine()).toEqual([
    {
      name: 'database',
      status: 'failed',
      message: expect.stringMatching(/^expected a database that answers, got ".*ECONNREFUSED.*": start it/) as string,
    },
  ])
  await pool.end()
})

test('a server that is not Postgres and closes the connection is the only thing reported', async () => {
  const impostor = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  const { promise, resolve } = Promise.withResolvers<void>()
  impostor.listen(0, '127.0.0.1', resolve)
  await promise
  const address = impostor.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const pool = createPool({ connectionString: `postgres://nobody@127.0.0.1:${port}/nowhere` })

  const checks = await new Doctor({ pool }).examine()

  expect(checks).toMatchObject([{ name: 'database', status: 'failed' }])
  await pool.end()
  impostor.close()
})

describe('schema', () => {
  test('a database without a schema lacks every migration, and the checks that need a schema are left out', async () => {
    await using empty = await createDatabase({ content: 'empty' })

    const checks = await doctor(empty).examine()

    expect(statuses(checks)).toEqual(['database ok', 'schema failed', 'clock ok'])
    expect(checks[1]?.message).toMatch(/^the database lacks 0001_schedules_and_ledger, .*: run `carillon migrate up`$/)
  })

  test('a database that is newer than the code is reported', async () => {
    await using newer = await createDatabase()
    await newer.pool.query(`insert into carillon.migrations values (999, '0999_later', 'x', now())`)
    await newer.pool.query(`delete from carillon.migrations where number > 1 and number < 999`)

    const [, schema] = await doctor(newer).examine()

    expect(schema).toMatchObject({ name: 'schema', status: 'failed' })
    expect(schema?.message).toMatch(/0999_later/)
  })

  test('changes that were made by hand are named, and months of the ledger are not reported as changes', async () => {
    await using changed = await createDatabase()
    const { pool } = changed
    await pool.query('alter table carillon.runs drop constraint runs_skipped_says_why')
    await pool.query('drop index carillon.schedules_agenda_idx')
    await pool.query('alter table carillon.workers add column shoe_size integer')

    const [, schema] = await doctor(changed).examine()

    expect(schema).toMatchObject({ name: 'schema', status: 'failed' })
    expect(schema?.message).toMatch(/missing create table runs \( … constraint runs_skipped_says_why CHECK/)
    expect(schema?.message).toMatch(/missing CREATE INDEX schedules_agenda_idx/)
    expect(schema?.message).toMatch(/unexpected create table workers \( … shoe_size integer/)
    expect(schema?.detail).toMatchObject({ missing: { length: 2 }, unexpected: { length: 1 } })
  })

  test('an index that was added by hand is a warning', async () => {
    await using changed = await createDatabase()
    await changed.pool.query('create index mine on carillon.schedules (owner_subject)')

    const [, schema] = await doctor(changed).examine()

    expect(schema).toMatchObject({ status: 'warning', message: expect.stringContaining('CREATE INDEX mine') as string })
  })
})

test.each([
  [0, 'ok', /^this machine's clock is 0 ms ahead of the database's$/],
  [1500, 'warning', /1.5 s ahead of .* none starts early/],
  [-45_000, 'failed', /45.0 s behind/],
] as const)('a clock that is ahead by %i ms is %s (I10)', async (aheadMs, status, message) => {
  expect(await check('clock', aheadMs)).toMatchObject({ status, message: expect.stringMatching(message) as string })
})

test('half of the response time is not counted as a difference of clocks', async () => {
  let ms = 0
  const instant = pipeline.clock.instant
  const slow: Clock = {
    databaseNow: () => new Date(instant + 400),
    monotonicMs: () => (ms += 800) - 800,
    batchDelay: () => Promise.resolve(),
    sleep: () => Promise.resolve(),
    after: () => () => undefined,
  }

  const checks = await new Doctor({ pool: database.pool, clock: slow, machineNow: () => instant }).examine()

  expect(checks[0]?.message).toMatch(/answered in 800 ms/)
  expect(checks[2]?.message).toMatch(/^this machine's clock is 0 ms ahead/)
})

test('living workers are counted, and a worker with other time zone rules is named', async () => {
  const { clock, db } = pipeline
  const [one, two] = [pipeline.worker('one'), pipeline.worker('two')]
  await one.heartbeat.runOnce()
  await two.heartbeat.runOnce()
  expect(await check('workers')).toMatchObject({ status: 'ok', message: '2 living workers, serving test' })
  expect(await check('tzdata')).toMatchObject({
    status: 'ok',
    message: `time zone rules ${TZDATA_VERSION}, the same in 2 living workers`,
  })

  await sql`update carillon.workers set tzdata_version = '2001a' where name = 'two'`.execute(db)
  expect(await check('tzdata')).toMatchObject({
    status: 'warning',
    message: expect.stringContaining('two has 2001a') as string,
  })

  clock.advance(HOUR)
  await one.heartbeat.runOnce()
  expect(await check('tzdata')).toMatchObject({ status: 'ok' })
  expect(await check('workers')).toMatchObject({ message: '1 living worker, serving test' })
  const workers = await doctor().listWorkers()
  expect(workers.filter(({ isAlive }) => isAlive)).toMatchObject([
    { name: 'one', targetKinds: ['test'], version: VERSION, tzdataVersion: TZDATA_VERSION, startedAt: clock.instant },
  ])
})

test('active schedules that no worker serves are reported', async () => {
  const { db } = pipeline
  expect(await check('workers')).toMatchObject({ status: 'ok', message: '0 living workers' })
  const schedule = await pipeline.create()
  expect(await check('workers')).toMatchObject({
    status: 'warning',
    message: 'no worker is alive, but schedules of test (1) are active: start a worker',
  })

  await pipeline.worker().heartbeat.runOnce()
  expect(await check('workers')).toMatchObject({ status: 'ok' })
  await sql`update carillon.workers set target_kinds = '{http}'`.execute(db)
  expect(await check('workers')).toMatchObject({
    status: 'failed',
    message: 'no living worker serves the active schedules of test (1): start one with these targets',
  })

  await pipeline.scheduler.pause(CALLER, schedule.id, { reason: 'a holiday' })
  expect(await check('workers')).toMatchObject({ status: 'ok' })
})

test('waiting runs are counted by kind, and the oldest overdue run and the kinds without a worker are named', async () => {
  const { db, clock, target } = pipeline
  const schedule = await pipeline.create()
  const other = await pipeline.create()
  const worker = pipeline.worker()
  target.script = () => FAIL
  await pipeline.pass(MINUTE, worker)
  await worker.runDue()
  const waiting = [{ targetKind: 'test', waiting: 2, overdueMs: 0, isServed: true }]
  expect(await check('runs')).toEqual({ name: 'runs', status: 'ok', message: '2 runs waiting', detail: waiting })

  await sql`update carillon.runs set due_at = ${new Date(clock.instant - 90_000)} where schedule_id = ${other.id}`.execute(
    db,
  )
  expect(await check('runs')).toMatchObject({
    status: 'warning',
    message: expect.stringContaining('the oldest, of test, has been due for 90.0 s') as string,
  })

  await sql`update carillon.runs set lane = 'graph.1' where schedule_id = ${schedule.id}`.execute(db)
  expect(await check('runs')).toMatchObject({
    status: 'failed',
    message:
      '2 runs waiting, and no living worker serves those of graph (1): ' +
      'start a worker with these targets (carillon worker --targets graph), or cancel the runs',
  })
})

test('a failing service is reported with its worker, its number of failures, their duration and the error', async () => {
  const { db } = pipeline
  await pipeline.worker('one').heartbeat.runOnce()
  const failing = { upkeep: { failures: 7, forMs: 420_000, error: 'canceling statement due to lock timeout' } }
  expect(await check('services')).toMatchObject({ status: 'ok', message: 'no service fails' })

  await sql`update carillon.workers set failing = ${JSON.stringify(failing)}::json`.execute(db)

  expect(await check('services')).toMatchObject({
    status: 'failed',
    message:
      'upkeep of one has failed 7 times in a row, for 7 min ("canceling statement due to lock timeout"): ' +
      'do as the error says, and see what the worker logs',
  })
})

test('the latest audit is reported with its findings, its lag and its age', async () => {
  const { db, workerDb, clock, events } = pipeline
  const auditor = new TestAuditor({ db: workerDb, clock, events })
  expect(await check('audit')).toMatchObject({
    status: 'ok',
    message: expect.stringContaining('no audit yet') as string,
  })
  const worker = pipeline.worker()
  await worker.heartbeat.runOnce()
  await pipeline.pass(MINUTE, worker)
  await auditor.runOnce()
  expect(await check('audit')).toMatchObject({
    status: 'ok',
    message: expect.stringContaining('found nothing') as string,
  })

  await pipeline.pass(11 * MINUTE, worker)
  expect(await check('audit')).toMatchObject({
    status: 'warning',
    message: expect.stringContaining('got those of the last 11 min still to compare') as string,
  })
  await auditor.runOnce()
  await sql`update carillon.workers set started_at = ${new Date(clock.instant - 2 * DAY)}`.execute(db)
  await sql`update carillon.audits set completed_at = ${new Date(clock.instant - 2 * DAY)}`.execute(db)
  expect(await check('audit')).toMatchObject({
    status: 'warning',
    message: expect.stringMatching(/^expected a full audit within the last 36 h, got the latest of/) as string,
  })

  const schedule = await pipeline.create()
  await sql`delete from carillon.schedule_revisions where schedule_id = ${schedule.id}`.execute(db)
  await pipeline.pass(1000, worker)
  await auditor.audit()
  expect(await check('audit')).toMatchObject({
    status: 'failed',
    message: expect.stringContaining('found 1 fault, 0 of them repaired (1 revision_missing in acme/web)') as string,
  })
})

test('secrets that no configured key decrypts are counted over all tenants; a doctor without keys has no such check', async () => {
  const { pool } = database
  const [lost, present] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)]
  const secretsCheck = async (keys: readonly Buffer[] | null): Promise<Check | undefined> =>
    (await new Doctor({ pool, keys }).examine()).find(({ name }) => name === 'secrets')
  expect(await secretsCheck([present])).toMatchObject({ status: 'ok', message: 'no secrets' })

  await new Secrets({ db: pipeline.db, keys: [lost] }).put(CALLER, 'one', 'value')
  await new Secrets({ db: pipeline.db, keys: [lost] }).put({ ...CALLER, tenantId: 'globex' }, 'two', 'value')
  await new Secrets({ db: pipeline.db, keys: [present] }).put(CALLER, 'three', 'value')

  expect(await secretsCheck([present])).toEqual({
    name: 'secrets',
    status: 'warning',
    message:
      'expected the keys that 3 secrets were encrypted with, got none that opens 2 of them: restore secrets.key, or ' +
      'append the lost key to CARILLON_SECRETS_KEY, separated by a comma, or put these secrets again',
    detail: { kept: 3, unreadable: 2 },
  })
  expect(await secretsCheck([present, lost])).toMatchObject({
    status: 'ok',
    message: '3 secrets, encrypted with the keys at hand',
  })
  expect(await secretsCheck(null)).toMatchObject({ status: 'warning', detail: { kept: 3, unreadable: 3 } })
  expect(statuses(await doctor().examine())).toEqual(NAMES.map((name) => `${name} ok`))
})

test('a check that throws fails alone, and the other checks still run', async () => {
  await using broken = await createDatabase()
  await broken.pool.query('alter table carillon.service_turns rename to elsewhere')

  const checks = await doctor(broken).examine()

  const failed = ['schema', 'audit']
  expect(statuses(checks)).toEqual(NAMES.map((name) => `${name} ${failed.includes(name) ? 'failed' : 'ok'}`))
})
