import { CompiledQuery, sql, type ConnectionProvider, type DatabaseConnection, type QueryExecutor } from 'kysely'
import pg from 'pg'

import type { Clock } from '../kernel/clock.ts'
import type { Scope } from '../kernel/scope.ts'
import type { Db, Queryable, Tx } from './database.ts'
import { commit } from './pool-dialect.ts'
import { IDLE_IN_TRANSACTION_TIMEOUT_MS, LOCK_TIMEOUT_MS, STATEMENT_TIMEOUT_MS } from './pool.ts'
import { API_DB_ROLE } from './server.ts'
import { SQLSTATE, sqlStateOf } from './sqlstate.ts'

const TRIES_MAX = 10
const BACKOFF_BASE_MS = 2
const BACKOFF_CAP_MS = 250
const BEGIN = CompiledQuery.raw('begin')
const ROLLBACK = CompiledQuery.raw('rollback')

/**
 * Runs `work` in one transaction. If Postgres aborts the transaction because of a deadlock or a serialization failure, all of it
 * runs again, so `work` must have no other effect than its statements.
 */
export function transact<Result>(db: Db, clock: Clock, work: (tx: Tx) => Promise<Result>): Promise<Result> {
  return retryAborted(clock, () => inTransaction(db, 'begin', work))
}

/** Reads with several statements that all see the same snapshot of the database. */
export function readSnapshot<Result>(db: Db, read: (tx: Tx) => Promise<Result>): Promise<Result> {
  return inTransaction(db, 'begin isolation level repeatable read read only', read)
}

/** Settings of one transaction besides its scope, by the names that `current_setting` knows. */
export type TransactionSettings = Readonly<Record<`carillon.${string}`, string>>

/**
 * Runs `work` in one transaction as the API's role, which sees only the rows of this tenant and project (I9). If the scope is null, it
 * sees no tenant's rows. Runs again if Postgres aborts it, as `transact` does.
 *
 * All settings are local to the transaction. None stays on the connection, so a pooler may lend the connection to another client
 * right after. They travel in one message with `begin`, so they cost no round trip.
 * @param first a statement without parameters that travels in the same message; `work` receives its rows
 */
export function transactScoped<Result>(
  db: Db,
  clock: Clock,
  scope: Scope | null,
  work: (tx: Tx, firstRows: readonly unknown[]) => Promise<Result>,
  settings: TransactionSettings = {},
  first?: string,
): Promise<Result> {
  const begin = `${beginScoped(scope, settings)}${first === undefined ? '' : `; ${first}`}`
  return retryAborted(clock, () => inTransaction(db, begin, work))
}

/**
 * Read committed, whatever the database's default: a statement that runs under a lock must see what was committed before the lock
 * was granted. `set local` instead of `set_config`: it needs no function call.
 */
const BEGIN_AS_API = `begin isolation level read committed; ${setLocal({
  role: API_DB_ROLE,
  statement_timeout: String(STATEMENT_TIMEOUT_MS),
  lock_timeout: String(LOCK_TIMEOUT_MS),
  idle_in_transaction_session_timeout: String(IDLE_IN_TRANSACTION_TIMEOUT_MS),
})}`

function beginScoped(scope: Scope | null, settings: TransactionSettings): string {
  const { tenantId = '', projectId = '' } = scope ?? {}
  return `${BEGIN_AS_API}; ${setLocal({ 'carillon.tenant_id': tenantId, 'carillon.project_id': projectId, ...settings })}`
}

function setLocal(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `set local ${name} = ${pg.escapeLiteral(value)}`)
    .join('; ')
}

async function inTransaction<Result>(
  db: Db,
  begin: string,
  work: (tx: Tx, firstRows: readonly unknown[]) => Promise<Result>,
): Promise<Result> {
  const executor = db.getExecutor()
  return executor.provideConnection(async (connection) => {
    const tx = new OpenTransaction(executor, connection)
    try {
      const { rows } = await connection.executeQuery(CompiledQuery.raw(begin))
      const result = await work(tx, rows)
      await commit(connection)
      return result
    } catch (error) {
      await rollBack(connection)
      throw error
    }
  })
}

/** The result of a transaction's work, and the statement that it sent last without waiting for the answer. */
export interface Sent<Result> {
  readonly result: Result
  readonly last: Promise<unknown>
  /** Postgres delays the commit until this instant of its own clock, in epoch milliseconds. Null: it commits at once. */
  readonly notBefore: number | null
}

interface PipelinedSteps<Result, Seen> {
  readonly work: (tx: Tx) => Promise<Sent<Result>>
  /** Queries sent right after `commit`, which see what this and other transactions committed. If they fail, the commit stands. */
  readonly look: (db: Pick<Queryable, 'getExecutor'>, result: Result) => Promise<Seen>
}

/**
 * Like `transact`, but sends statements without waiting for answers that it does not need. `begin` goes out with the first
 * statement, `commit` with the last one, and the queries of `look` right after the commit. Each saves a round trip if the pool
 * pipelines (option `isPrepared` of `createPool`). On other pools the same statements run one after the other.
 * The bench of lateness (`npm run bench -- --only lateness`) shows the effect: slots start that much earlier.
 *
 * If the last statement fails, Postgres treats the `commit` after it as a rollback: nothing is written.
 */
export function transactPipelined<Result, Seen>(
  db: Db,
  clock: Clock,
  { work, look }: PipelinedSteps<Result, Seen>,
): Promise<{ result: Result; seen: Seen | undefined }> {
  const executor = db.getExecutor()
  return retryAborted(clock, () =>
    executor.provideConnection(async (connection) => {
      const tx = new OpenTransaction(executor, connection)
      try {
        // All statements go through the same executor, so Postgres receives them in the order of these calls.
        const send = tx.getExecutor()
        const [, { result, last, notBefore }] = await Promise.all([send.executeQuery(BEGIN), work(tx)])
        const waited = notBefore === null ? undefined : waitUntil(tx, notBefore)
        const ends = Promise.allSettled([last, waited, commit(send)])
        // An error thrown after the commit would lose `result`, which holds the runs that this worker must now dispatch.
        const seen = look(tx, result).catch(() => undefined)
        // In this order: a statement that fails also turns the commit into a rollback, and its own error says why.
        for (const end of await ends) if (end.status === 'rejected') throw end.reason
        return { result, seen: await seen }
      } catch (error) {
        await rollBack(connection)
        throw error
      }
    }),
  )
}

/** Waits by Postgres' clock, and keeps the transaction's locks meanwhile. */
export async function waitUntil(tx: Tx, instant: number): Promise<void> {
  await sql`select pg_sleep(extract(epoch from ${new Date(instant)}::timestamptz - clock_timestamp()))`.execute(tx)
}

/** Kysely's own transactions send one `begin` without settings, and wait for every answer before the next statement. */
class OpenTransaction implements Tx {
  readonly isTransaction = true
  readonly #executor: QueryExecutor

  constructor(executor: QueryExecutor, connection: DatabaseConnection) {
    const provider: ConnectionProvider = { provideConnection: (consumer) => consumer(connection) }
    this.#executor = executor.withConnectionProvider(provider)
  }

  getExecutor(): QueryExecutor {
    return this.#executor
  }
}

/** The caller throws the error that came first. If even the rollback fails, the connection is lost and Postgres rolls back itself. */
async function rollBack(connection: DatabaseConnection): Promise<void> {
  try {
    await connection.executeQuery(ROLLBACK)
  } catch {
    // The driver discards the connection.
  }
}

/** Retries only transactions that Postgres has certainly aborted. If the connection was lost, Postgres may have committed. */
async function retryAborted<Result>(clock: Clock, attempt: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt()
    } catch (error) {
      if (!isAborted(error) || tries >= TRIES_MAX) throw error
      await clock.sleep(Math.random() * Math.min(BACKOFF_CAP_MS, BACKOFF_BASE_MS * 2 ** tries))
    }
  }
}

function isAborted(error: unknown): boolean {
  const code = sqlStateOf(error)
  return code === SQLSTATE.serializationFailure || code === SQLSTATE.deadlockDetected
}
