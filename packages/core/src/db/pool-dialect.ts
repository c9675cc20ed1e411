import { createHash } from 'node:crypto'

import {
  AbortedTransactionError,
  CompiledQuery,
  PostgresDialect,
  type DatabaseConnection,
  type Driver,
  type QueryExecutor,
  type QueryResult,
  type TransactionSettings,
} from 'kysely'
import type pg from 'pg'

import { isConnectionInDoubt } from './sqlstate.ts'

/** How many statements a pool prepares at most. Further ones are planned each time. */
const STATEMENTS_MAX = 100

/**
 * Kysely on a pg pool. It differs from Kysely's own driver in three ways:
 * - it discards a connection after every error that leaves its session in doubt, and one that is still in a transaction
 *   (tests/db/broken-connection.test.ts)
 * - it prepares statements if the pool allows it (`isPrepared` of `createPool`)
 * - if one message holds several statements, it returns the rows of all of them
 */
export class PoolDialect extends PostgresDialect {
  readonly #pool: pg.Pool

  constructor(pool: pg.Pool) {
    super({ pool })
    this.#pool = pool
  }

  override createDriver(): Driver {
    return new PoolDriver(this.#pool)
  }
}

class PoolDriver implements Driver {
  readonly #pool: pg.Pool
  readonly #names: StatementNames | undefined

  constructor(pool: pg.Pool) {
    this.#pool = pool
    // `createPool` sets this option for the pools that may prepare statements, and for no other.
    this.#names = pool.options.pipeline === true ? new StatementNames() : undefined
  }

  async init(): Promise<void> {
    // The pool connects when it is first used.
  }

  async acquireConnection(): Promise<PooledConnection> {
    return new PooledConnection(await this.#pool.connect(), this.#names)
  }

  async beginTransaction(connection: DatabaseConnection, settings: TransactionSettings): Promise<void> {
    const { isolationLevel, accessMode = '' } = settings
    const level = isolationLevel === undefined ? '' : `isolation level ${isolationLevel}`
    await connection.executeQuery(CompiledQuery.raw(`begin ${level} ${accessMode}`))
  }

  commitTransaction(connection: DatabaseConnection): Promise<void> {
    return commit(connection)
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('rollback'))
  }

  async releaseConnection(connection: PooledConnection): Promise<void> {
    connection.release()
  }

  async destroy(): Promise<void> {
    await this.#pool.end()
  }
}

const COMMIT: CompiledQuery<{ command?: string }> = CompiledQuery.raw('commit')

/** @throws AbortedTransactionError if Postgres rolled back instead, because a statement failed whose error the caller ignored */
export async function commit(connection: Pick<DatabaseConnection | QueryExecutor, 'executeQuery'>): Promise<void> {
  const { rows } = await connection.executeQuery(COMMIT)
  if (rows[0]?.command === 'ROLLBACK') throw new AbortedTransactionError()
}

/** One connection while it is checked out of the pool. */
class PooledConnection implements DatabaseConnection {
  readonly #client: pg.PoolClient
  readonly #names: StatementNames | undefined
  #broken: Error | undefined

  constructor(client: pg.PoolClient, names: StatementNames | undefined) {
    this.#client = client
    this.#names = names
  }

  async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    // A rollback that is sent after a lost query would wait for its own time limit.
    if (this.#broken !== undefined) throw this.#broken
    try {
      const name = this.#names?.nameOf(sql, parameters)
      const query = { text: sql, values: [...parameters], ...(name !== undefined && { name }) }
      return resultOf<Row>(await this.#client.query(query))
    } catch (error) {
      if (isConnectionInDoubt(error)) this.#broken = error instanceof Error ? error : new Error(String(error))
      throw error
    }
  }

  // eslint-disable-next-line require-yield -- the interface demands it; Carillon reads pages and streams nothing
  async *streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    throw new Error('expected a query that is not streamed: read pages instead')
  }

  release(): void {
    // After a rollback that failed, the next borrower would find the transaction still open.
    const isIdle = !tellsStatus(this.#client) || this.#client.getTransactionStatus() === 'I'
    this.#client.release(this.#broken ?? !isIdle)
  }
}

/** False for a client of an application's own pool whose version of pg is older than 8.21. */
function tellsStatus(client: pg.PoolClient): boolean {
  return typeof client.getTransactionStatus === 'function'
}

/** The rows of a query. A message of several statements has several results: their rows are returned one after the other. */
function resultOf<Row>(result: pg.QueryResult | pg.QueryResult[]): QueryResult<Row> {
  if (Array.isArray(result)) return { rows: result.flatMap(({ rows }) => rows as Row[]) }
  const { command, rows, rowCount } = result
  // `commit` reads the command from the rows. Kysely's own driver returns it in the same way.
  if (command === 'COMMIT' || command === 'ROLLBACK') return { rows: [{ command } as Row] }
  return { rows: rows as Row[], ...(rowCount !== null && { numAffectedRows: BigInt(rowCount) }) }
}

/**
 * Gives each text of a statement a name. Postgres plans a named statement once per connection. The name is a hash of the text:
 * several Kysely instances may share a pool, and one name must never stand for two texts on a connection.
 */
class StatementNames {
  readonly #names = new Map<string, string>()

  /**
   * Undefined for a statement without parameters, and for every further text once STATEMENTS_MAX texts have a name: so many texts mean
   * that they are built per call, and a name would never be used twice.
   */
  nameOf(text: string, parameters: readonly unknown[]): string | undefined {
    if (parameters.length === 0) return undefined
    const known = this.#names.get(text)
    if (known !== undefined || this.#names.size >= STATEMENTS_MAX) return known
    const name = `carillon_${createHash('sha256').update(text).digest('base64url').slice(0, 22)}`
    this.#names.set(text, name)
    return name
  }
}
