import { Kysely, type KyselyConfig, type QueryExecutorProvider } from 'kysely'
import type pg from 'pg'

import { PoolDialect } from './pool-dialect.ts'

/** Any pool of the driver, such as `createPool` returns. An application may pass its own. */
export type Pool = pg.Pool

/** A pool of connections. Two statements may run on two connections. */
export type Db = Kysely<unknown>

/** An open transaction, as the functions of `transact.ts` open it. */
export interface Tx extends QueryExecutorProvider {
  readonly isTransaction: true
}

/** What a statement runs on if it needs no transaction of its own. */
export type Queryable = Db | Tx

/** @param log for tests: receives every statement that Postgres answered */
export function createDb(pool: Pool, { log }: Pick<KyselyConfig, 'log'> = {}): Db {
  return new Kysely<unknown>({ dialect: new PoolDialect(pool), ...(log && { log }) })
}
