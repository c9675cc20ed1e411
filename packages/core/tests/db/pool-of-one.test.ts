import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { createDb, type Db, type Queryable } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { transactScoped } from '../../src/db/transact.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import type { Caller } from '../../src/kernel/scope.ts'
import { stableFraction } from '../../src/policy/stable-fraction.ts'
import { Scheduler } from '../../src/scheduler.ts'
import { Worker } from '../../src/worker.ts'
import { createDatabase, type TestDatabase } from '../database.ts'
import { findPgBouncer, PgBouncer } from '../pgbouncer.ts'
import { ScriptedTarget } from '../scripted-target.ts'
import { sql } from '../sql.ts'

/** `npm run test:walls` runs 10,000. */
const OPERATIONS = Number(process.env['WALL_OPERATIONS'] ?? 2000)
/** How many operations compete for the one connection at a time. */
const CONCURRENCY = 20
const TIME_LIMIT_MS = 300_000
const TENANTS = ['amber', 'basil'] as const

type Tenant = (typeof TENANTS)[number]

interface World {
  readonly db: Db
  readonly scheduler: Scheduler
  /** A pool beside the one under test, which ends connections and counts rows. */
  readonly admin: pg.Pool
  readonly scheduleIds: Readonly<Record<Tenant, string>>
}

let database: TestDatabase

beforeAll(async () => {
  database = await createDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const pgbouncer = findPgBouncer()

/** What lends the one connection: the pool itself, and PgBouncer where it is installed. */
const LENDERS = {
  'a pool of one': lentByPool,
  ...(pgbouncer === undefined ? {} : { 'PgBouncer, per transaction': lentByPgBouncer(pgbouncer) }),
}

test.each(Object.entries(LENDERS))(
  'no operation sees another tenant’s row while two tenants share one connection, lent by %s, with throws, cancels and kills',
  { timeout: TIME_LIMIT_MS },
  async (_lender, lend) => {
    const counts = await lend(operate)

    expect(counts).toMatchObject({ operations: OPERATIONS, mixed: 0, leftovers: 0, unexpected: 0 })
    for (const kind of Object.keys(KINDS)) expect(counts[kind], kind).toBeGreaterThan(10)
  },
)

test.each(pgbouncer === undefined ? [] : [pgbouncer])(
  'a worker does not start if a pooler ignores its role, instead of acting as the login role (I9)',
  async (path) => {
    const ignored = 'options,statement_timeout,lock_timeout,idle_in_transaction_session_timeout'
    await using bouncer = await PgBouncer.start(path, database.url, `ignore_startup_parameters = ${ignored}`)
    await using worker = new Worker({ databaseUrl: bouncer.url, targets: [new ScriptedTarget()] })

    await expect(worker.start()).rejects.toMatchObject({
      code: 'role_refused',
      message: expect.stringMatching(/^expected to act as carillon_worker, got (?!carillon_worker)/) as string,
    })
  },
)

test('a transaction that Postgres aborts for a serialization failure runs again as a whole', async () => {
  const pool = createPool({ connectionString: database.url, maxConnections: 1 })
  let tries = 0
  const result = await transactScoped(
    createDb(pool),
    systemClock,
    { tenantId: 'amber', projectId: 'web' },
    async (tx) => {
      tries += 1
      if (tries === 1) await sql`do $$begin raise exception 'aborted' using errcode = '40001'; end$$`.execute(tx)
      return readTenants(tx)
    },
  )
  await pool.end()

  expect({ tries, isArray: Array.isArray(result) }).toEqual({ tries: 2, isArray: true })
})

test('a transaction that throws is rolled back and releases its connection, which the next one reuses', async () => {
  const pool = createPool({ connectionString: database.url, maxConnections: 1 })
  const db = createDb(pool)
  const scope = { tenantId: 'amber', projectId: 'web' }
  const readPid = async (tx: Queryable): Promise<number | undefined> =>
    (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx)).rows[0]?.pid
  const pids: unknown[] = []

  await expect(
    transactScoped(db, systemClock, scope, async (tx) => {
      pids.push(await readPid(tx))
      throw new Error('thrown in the middle')
    }),
  ).rejects.toThrow('thrown in the middle')
  pids.push(await transactScoped(db, systemClock, scope, readPid))
  await pool.end()

  expect(new Set(pids).size).toBe(1)
})

type Use = (pool: pg.Pool) => Promise<Record<string, number>>

async function lentByPool(use: Use): Promise<Record<string, number>> {
  const pool = createPool({ connectionString: database.url, maxConnections: 1 })
  const counts = await use(pool)
  await pool.end()
  return counts
}

/** Uses two clients, so that the transactions of both take turns on the one connection behind PgBouncer. */
function lentByPgBouncer(path: string) {
  return async (use: Use): Promise<Record<string, number>> => {
    await using bouncer = await PgBouncer.start(path, database.url)
    const pool = createPool({ connectionString: bouncer.url, maxConnections: 2 })
    const counts = await use(pool)
    await pool.end()
    return counts
  }
}

/** The operations, each with its share of a hundred. Each returns the tenants whose rows it saw. */
const KINDS = {
  reads: { share: 55, run: ({ db }, scope) => transactScoped(db, systemClock, scope, readTenants) },
  lists: {
    share: 15,
    run: async ({ scheduler }, scope) => (await scheduler.list(callerOf(scope))).map(({ tenantId }) => tenantId),
  },
  otherTenants: {
    share: 10,
    run: async ({ scheduler, scheduleIds }, { tenantId }) => {
      const other = TENANTS.find((tenant) => tenant !== tenantId) ?? 'amber'
      return [(await scheduler.get(callerOf({ tenantId }), scheduleIds[other])).tenantId]
    },
  },
  throws: {
    share: 10,
    run: ({ db }, scope) =>
      transactScoped(db, systemClock, scope, async (tx) => {
        await readTenants(tx)
        throw new Error('thrown in the middle')
      }),
  },
  failures: {
    share: 5,
    run: ({ db }, scope) =>
      transactScoped(db, systemClock, scope, async (tx) => {
        await sql`select 1 / 0`.execute(tx)
        return readTenants(tx)
      }),
  },
  cancels: {
    share: 4,
    run: ({ db }, scope) =>
      transactScoped(db, systemClock, scope, async (tx) => {
        await sql`set local statement_timeout = 1`.execute(tx)
        await sql`select pg_sleep(10)`.execute(tx)
        return readTenants(tx)
      }),
  },
  kills: {
    share: 1,
    run: ({ db, admin }, scope) =>
      transactScoped(db, systemClock, scope, async (tx) => {
        const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx)
        await admin.query('select pg_terminate_backend($1)', [rows[0]?.pid])
        return readTenants(tx)
      }),
  },
} satisfies Record<
  string,
  { share: number; run: (world: World, scope: { tenantId: Tenant; projectId: 'web' }) => Promise<string[]> }
>

type Kind = keyof typeof KINDS

const BY_SHARE = (Object.keys(KINDS) as Kind[]).flatMap((kind) => Array.from({ length: KINDS[kind].share }, () => kind))

async function operate(pool: pg.Pool): Promise<Record<string, number>> {
  const db = createDb(pool)
  const admin = createPool({ connectionString: database.url, maxConnections: 2 })
  const target = new ScriptedTarget()
  const scheduler = new Scheduler({ db, targets: new Map([['test', target]]) })
  const scheduleIds = { amber: await makeSchedule(scheduler, 'amber'), basil: await makeSchedule(scheduler, 'basil') }
  const world: World = { db, scheduler, admin, scheduleIds }
  const counts: Record<string, number> = { operations: 0, mixed: 0, leftovers: 0, unexpected: 0 }
  const count = (name: string): void => void (counts[name] = (counts[name] ?? 0) + 1)
  let next = 0
  async function work(): Promise<void> {
    while (next < OPERATIONS) {
      const number = next++
      const kind = BY_SHARE[Math.floor(stableFraction(`kind ${number}`) * BY_SHARE.length)] ?? 'reads'
      const tenantId = TENANTS[stableFraction(`tenant ${number}`) < 0.5 ? 0 : 1]
      await operateOnce(world, kind, tenantId, count)
      // Settings that a transaction left on the connection are visible outside of a transaction.
      if (number % 10 === 0 && (await hasLeftovers(pool))) count('leftovers')
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, work))
  await admin.end()
  return counts
}

async function operateOnce(world: World, kind: Kind, tenantId: Tenant, count: (name: string) => void): Promise<void> {
  count('operations')
  count(kind)
  try {
    const seen = await KINDS[kind].run(world, { tenantId, projectId: 'web' })
    if (seen.some((tenant) => tenant !== tenantId)) count('mixed')
    if (kind !== 'reads' && kind !== 'lists') count('unexpected')
    else if (seen.length === 0) count('unexpected')
  } catch {
    // A read fails if the pooler had queued it behind a killed backend. It saw no row.
    if (kind === 'lists' || kind === 'reads') count('interrupted')
  }
}

async function readTenants(db: Queryable): Promise<string[]> {
  const { rows } = await sql<{ tenant_id: string }>`
    select tenant_id from carillon.schedules
    union all select tenant_id from carillon.schedule_revisions
    union all select tenant_id from carillon.execution_grants`.execute(db)
  return rows.map(({ tenant_id }) => tenant_id)
}

async function hasLeftovers(pool: pg.Pool): Promise<boolean> {
  try {
    const { rows } = await pool.query<{ setting: string; is_same: boolean }>(`
      select coalesce(current_setting('carillon.tenant_id', true), '') || coalesce(current_setting('carillon.project_id', true), '')
        as setting, current_user = session_user as is_same`)
    return rows[0]?.setting !== '' || !rows[0].is_same
  } catch {
    return false
  }
}

async function makeSchedule(scheduler: Scheduler, tenantId: Tenant): Promise<string> {
  const cadence = { kind: 'cron', expression: '0 0 1 1 *', timezone: 'UTC' }
  const { id } = await scheduler.create(callerOf({ tenantId }), { name: tenantId, cadence, target: { kind: 'test' } })
  return id
}

function callerOf({ tenantId }: { readonly tenantId: Tenant }): Caller {
  return { tenantId, projectId: 'web', subject: `user:${tenantId}` }
}
