import { randomUUID } from 'node:crypto'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { migrate, migrateDown } from '../../src/db/migrate.ts'
import { createPool } from '../../src/db/pool.ts'
import { Doctor } from '../../src/doctor/doctor.ts'
import type { Target } from '../../src/ports/target.ts'
import { Scheduler } from '../../src/scheduler.ts'
import { Worker } from '../../src/worker.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { ManualClock } from '../manual-clock.ts'
import { CALLER, EVERY_MINUTE, MINUTE } from '../pipeline.ts'
import { ScriptedTarget } from '../scripted-target.ts'

/** As in production, the owner of the tables is no superuser, so row-level security applies to it too. */
const OWNER = `owner_${randomUUID().replaceAll('-', '')}`

let database: TestDatabase
let url: string

beforeAll(async () => {
  // Migrating another database as superuser first creates the roles, which all databases of the server share.
  await (await createDatabase())[Symbol.asyncDispose]()
  database = await createDatabase({ content: 'empty' })
  await database.pool.query(`
    create role ${OWNER} login password 'plain' nosuperuser nobypassrls;
    grant carillon_api, carillon_worker to ${OWNER};
    alter database ${database.name} owner to ${OWNER}`)
  const changed = new URL(database.url)
  changed.username = OWNER
  changed.password = 'plain'
  url = changed.href
})
afterAll(async () => {
  const { pool } = database
  await pool.query(
    `drop owned by ${OWNER} cascade; alter database ${database.name} owner to postgres; drop role ${OWNER}`,
  )
  await database[Symbol.asyncDispose]()
})

test('an owner that is no superuser can migrate up, create, run, audit, examine and migrate down (I9)', async () => {
  const pool = createPool({ connectionString: url })
  const target = new ScriptedTarget()
  const targets = new Map<string, Target>([[target.kind, target]])
  await migrate(pool)
  const scheduler = new Scheduler({ db: createDb(pool), targets })
  const worker = new Worker({ databaseUrl: url, targets: [target], heartbeatMs: MINUTE })
  const failures: unknown[] = []
  worker.events.on('service.failed', (failure) => failures.push(failure))
  const [settled, audited] = (['attempt.settled', 'audit.finished'] as const).map(
    (event) => new Promise((resolve) => worker.events.on(event, resolve)),
  )
  await worker.start()

  const schedule = await scheduler.create(CALLER, EVERY_MINUTE)
  await scheduler.runNow(CALLER, schedule.id)
  expect(await settled).toMatchObject({ scheduleId: schedule.id, state: 'succeeded' })
  await scheduler.requestAudit()
  expect(await audited).toMatchObject({ findings: 0 })
  // The clocks stand still, so no check depends on how busy the machine is.
  const { rows } = await pool.query<{ now: Date }>('select now() as now')
  const clock = new ManualClock(rows[0]?.now ?? Number.NaN)
  const checks = await new Doctor({ pool, clock, machineNow: () => clock.instant }).examine()
  expect(checks.map(({ status }) => status)).toEqual(checks.map(() => 'ok'))
  expect(checks.find(({ name }) => name === 'workers')).toMatchObject({
    detail: { active: [{ targetKind: 'test', schedules: 1 }] },
  })
  await scheduler.delete(CALLER, schedule.id)
  await worker.stop()
  expect(failures).toEqual([])
  await migrateDown(pool, { to: 0 })
  await pool.end()
})
