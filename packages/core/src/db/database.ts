import type pg from 'pg'

import { PooledConnection, StatementNames } from './connection.ts'
import { schemaOf, SeverablePool } from './pool.ts'
import { searchPath } from './schema-name.ts'
import type { Queryable, Statement } from './sql.ts'

export type { Queryable } from './sql.ts'

/** Any pool of the driver, such as `createPool` returns. An application may pass its own. */
export type Pool = pg.Pool

/** An open transaction, as the functions of `transact.ts` open it. */
export interface Tx extends Queryable {
  readonly isTransaction: true
  /** The name of Carillon's schema. */
  readonly schema: string
}

export interface DbOptions {
  /** The schema that holds Carillon's tables. @default the schema of `createPool`, else 'carillon' */
  readonly schema?: string
  /** For tests: called with every statement that Postgres answered, before its sender gets the rows. */
  readonly onAnswer?: (statement: Statement, result: pg.QueryResult) => void | Promise<void>
}

/** A pool of connections to one Carillon. Two statements may run on two connections. */
export class Db implements Queryable {
  readonly schema: string
  readonly #pool: Pool
  readonly #onAnswer: DbOptions['onAnswer']
  readonly #names: StatementNames | undefined
  /** True if each connection of the pool looks names up in Carillon's schema by itself. */
  readonly #hasSearchPath: boolean

  constructor(pool: Pool, { schema, onAnswer }: DbOptions) {
    this.schema = schemaOf(pool, schema)
    this.#pool = pool
    this.#onAnswer = onAnswer
    // `createPool` sets `pipeline` only on a pool whose connections may prepare statements.
    this.#names = pool.options.pipeline === true ? new StatementNames() : undefined
    this.#hasSearchPath = pool instanceof SeverablePool && pool.hasSearchPath && pool.schema === this.schema
  }

  /** Runs one statement. If the pool's connections have another search path, it runs in a transaction of its own. */
  run(statement: Statement): Promise<unknown[]> {
    return this.withConnection((connection) => this.runOn(connection, statement))
  }

  /** The same on a connection that is in no transaction. */
  async runOn(connection: PooledConnection, statement: Statement): Promise<unknown[]> {
    if (this.#hasSearchPath) return connection.run(statement)
    await connection.run({ text: this.beginWith('begin'), parameters: [] })
    try {
      const rows = await connection.run(statement)
      await connection.commit()
      return rows
    } catch (error) {
      await connection.rollBack()
      throw error
    }
  }

  /** A statement that opens a transaction, in which every name is then looked up in Carillon's schema. */
  beginWith(begin: string): string {
    return this.#hasSearchPath ? begin : `${begin}; set local search_path = ${searchPath(this.schema)}`
  }

  async withConnection<Result>(work: (connection: PooledConnection) => Promise<Result>): Promise<Result> {
    const client = await this.#pool.connect()
    const connection = new PooledConnection(client, this.#names, this.#onAnswer)
    try {
      return await work(connection)
    } finally {
      connection.release()
    }
  }

  /** Ends the pool. */
  close(): Promise<void> {
    return this.#pool.end()
  }
}

export function createDb(pool: Pool, options: DbOptions = {}): Db {
  return new Db(pool, options)
}
