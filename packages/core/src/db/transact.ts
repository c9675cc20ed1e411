import pg from 'pg'

import type { Clock } from '../kernel/clock.ts'
import type { Scope } from '../kernel/scope.ts'
import type { PooledConnection } from './connection.ts'
import type { Db, Queryable, Tx } from './database.ts'
import { IDLE_IN_TRANSACTION_TIMEOUT_MS, LOCK_TIMEOUT_MS, STATEMENT_TIMEOUT_MS } from './pool.ts'
import { apiRole, searchPath } from './schema-name.ts'
import { sql, type Statement } from './sql.ts'
import { isConnectionInDoubt, SQLSTATE, sqlStateOf } from './sqlstate.ts'

const SAVEPOINT: Statement = { text: 'savepoint work', parameters: [] }
const RELEASE: Statement = { text: 'release savepoint work', parameters: [] }
const ROLL_BACK_TO_SAVEPOINT: Statement = { text: 'rollback to savepoint work', parameters: [] }
const NOTHING: Statement = { text: 'select', parameters: [] }
const TRIES_MAX = 10
const BACKOFF_BASE_MS = 2
const BACKOFF_CAP_MS = 250

/**
 * Runs `work` in one transaction. If Postgres aborts the transaction because of a deadlock or a serialization failure, all of it
 * runs again, so `work` must have no other effect than its statements.
 */
export function transact<Result>(db: Db, clock: Clock, work: (tx: Tx) => Promise<Result>): Promise<Result> {
  return retryAborted(clock, () => inTransaction(db, beginOf(db), work))
}

/** Reads with several statements that all see the same snapshot of the database. */
export function readSnapshot<Result>(db: Db, read: (tx: Tx) => Promise<Result>): Promise<Result> {
  return inTransaction(db, beginOf(db, 'begin isolation level repeatable read read only'), read)
}

/** Statements without parameters that are sent in one message with `begin`. */
export type FirstStatements = readonly Statement[]

/** Settings of one transaction besides its scope, by the names that `current_setting` knows. */
export type TransactionSettings = Readonly<Record<`carillon.${string}`, string>>

/**
 * Runs `work` in one transaction as the API's role, which sees only the rows of this tenant and project (I9). If the scope is null, it
 * sees no tenant's rows. Runs again if Postgres aborts it, as `transact` does.
 *
 * All settings are local to the transaction. None stays on the connection, so a pooler may lend the connection to another client
 * right after. They travel in one message with `begin`, so they cost no round trip.
 * @param first statements that travel in the same message; `work` receives their rows, one after the other
 */
export function transactScoped<Result>(
  db: Db,
  clock: Clock,
  scope: Scope | null,
  work: (tx: Tx, firstRows: readonly unknown[]) => Promise<Result>,
  settings: TransactionSettings = {},
  first: FirstStatements = [],
): Promise<Result> {
  const text = [beginScoped(db.schema, scope, settings), ...first.map((statement) => statement.text)].join('; ')
  // One list of columns is enough: it says that Carillon reads the rows, not how many columns they have.
  const columns = first.find((statement) => statement.columns)?.columns
  const begin = { text, parameters: [], ...(columns && { columns }) }
  return retryAborted(clock, () => inTransaction(db, begin, work))
}

/**
 * Read committed, whatever the database's default: a statement that runs under a lock must see what was committed before the lock
 * was granted. `set local` instead of `set_config`: it needs no function call.
 */
function beginScoped(schema: string, scope: Scope | null, settings: TransactionSettings): string {
  const { tenantId = '', projectId = '' } = scope ?? {}
  const ofTransaction = setLocal({
    role: apiRole(schema),
    statement_timeout: String(STATEMENT_TIMEOUT_MS),
    lock_timeout: String(LOCK_TIMEOUT_MS),
    idle_in_transaction_session_timeout: String(IDLE_IN_TRANSACTION_TIMEOUT_MS),
    'carillon.tenant_id': tenantId,
    'carillon.project_id': projectId,
    ...settings,
  })
  return `begin isolation level read committed; set local search_path = ${searchPath(schema)}; ${ofTransaction}`
}

function setLocal(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `set local ${name} = ${pg.escapeLiteral(value)}`)
    .join('; ')
}

function beginOf(db: Db, begin = 'begin'): Statement {
  return { text: db.beginWith(begin), parameters: [] }
}

async function inTransaction<Result>(
  db: Db,
  begin: Statement,
  work: (tx: Tx, firstRows: readonly unknown[]) => Promise<Result>,
): Promise<Result> {
  return db.withConnection(async (connection) => {
    try {
      const rows = await connection.run(begin)
      const result = await work(new OpenTransaction(db.schema, connection), rows)
      await connection.commit()
      return result
    } catch (error) {
      await connection.rollBack()
      throw error
    }
  })
}

/**
 * Runs `work` in one transaction of a worker that names a tenant and a project. In the tables of modules it sees only their rows: a policy
 * of those tables says so. Core's tables have no such policy, because the pipeline works on many tenants at once.
 */
export function transactNarrowed<Result>(
  db: Db,
  clock: Clock,
  { tenantId, projectId }: Scope,
  work: (tx: Tx) => Promise<Result>,
): Promise<Result> {
  return transact(db, clock, async (tx) => {
    await sql`
      select set_config('carillon.tenant_id', ${tenantId}, true), set_config('carillon.project_id', ${projectId}, true)`.execute(
      tx,
    )
    return work(tx)
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
  readonly look: (db: Queryable, result: Result) => Promise<Seen>
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
  const begin = beginOf(db)
  return retryAborted(clock, () =>
    db.withConnection(async (connection) => {
      const tx = new OpenTransaction(db.schema, connection)
      try {
        // All statements go through the same connection, so Postgres receives them in the order of these calls.
        const [, { result, last, notBefore }] = await Promise.all([connection.run(begin), work(tx)])
        const waited = notBefore === null ? undefined : waitUntil(tx, notBefore)
        const ends = Promise.allSettled([last, waited, connection.commit()])
        // An error thrown after the commit would lose `result`, which holds the runs that this worker must now dispatch.
        const after: Queryable = { run: (statement) => db.runOn(connection, statement) }
        const looking = look(after, result).catch(() => undefined)
        // Waits for `look` even if an end failed: until its last statement is sent, the connection must not be lent again.
        const [ended, seen] = await Promise.all([ends, looking])
        // In this order: a statement that fails also turns the commit into a rollback, and its own error says why.
        for (const end of ended) if (end.status === 'rejected') throw end.reason
        return { result, seen }
      } catch (error) {
        await connection.rollBack()
        throw error
      }
    }),
  )
}

/** Waits by Postgres' clock, and keeps the transaction's locks meanwhile. */
export async function waitUntil(tx: Tx, instant: number): Promise<void> {
  await sql`select pg_sleep(extract(epoch from ${new Date(instant)}::timestamptz - clock_timestamp()))`.execute(tx)
}

/**
 * Runs work after a savepoint of the transaction. If the work throws, only what it wrote is rolled back, and the transaction goes on.
 * A broken connection or an aborted transaction ends the transaction all the same.
 */
export async function withSavepoint<Result>(tx: Tx, work: (tx: Tx) => Promise<Result>): Promise<Result> {
  await tx.run(SAVEPOINT)
  try {
    const result = await work(tx)
    await tx.run(RELEASE)
    return result
  } catch (error) {
    // On a broken connection this fails as well: the caller learns the error that came first.
    await tx.run(ROLL_BACK_TO_SAVEPOINT).catch(() => undefined)
    throw error
  }
}

/** False if the connection of the transaction is lost. A transaction that a failed statement has aborted can still be rolled back. */
export async function isUsable(tx: Tx): Promise<boolean> {
  try {
    await tx.run(NOTHING)
    return true
  } catch (error) {
    return sqlStateOf(error) !== undefined && !isConnectionInDoubt(error)
  }
}

/** Limits how long each statement of the transaction waits for a lock. */
export async function limitLockWait(tx: Tx, limitMs: number): Promise<void> {
  await sql`select set_config('lock_timeout', ${String(limitMs)}, true)`.execute(tx)
}

/**
 * Lends the transaction to code that may go on after its time is over: from `close` on it sends nothing more, so that it cannot write into
 * a later transaction of the same connection.
 */
export class LentTransaction implements Tx {
  readonly isTransaction = true
  readonly schema: string
  readonly #tx: Tx
  #isClosed = false

  constructor(tx: Tx) {
    this.#tx = tx
    this.schema = tx.schema
  }

  close(): void {
    this.#isClosed = true
  }

  run(statement: Statement): Promise<unknown[]> {
    if (this.#isClosed) return Promise.reject(new Error('expected a statement while the hook runs, got one after it'))
    return this.#tx.run(statement)
  }
}

class OpenTransaction implements Tx {
  readonly isTransaction = true
  readonly schema: string
  readonly #connection: PooledConnection

  constructor(schema: string, connection: PooledConnection) {
    this.schema = schema
    this.#connection = connection
  }

  run(statement: Statement): Promise<unknown[]> {
    return this.#connection.run(statement)
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

/** True if Postgres aborted the transaction because of others: then all of it must run again. */
export function isAborted(error: unknown): boolean {
  const code = sqlStateOf(error)
  return code === SQLSTATE.serializationFailure || code === SQLSTATE.deadlockDetected
}
