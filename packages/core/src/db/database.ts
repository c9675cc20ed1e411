import { Kysely, type KyselyConfig, type QueryExecutorProvider } from 'kysely'
import type pg from 'pg'

import { PoolDialect } from './pool-dialect.ts'

/** A pool of connections. Two statements may run on two connections. */
export type Db = Kysely<unknown>

/** An open transaction, as the functions of `transact.ts` open it. */
export interface Tx extends QueryExecutorProvider {
  readonly isTransaction: true
}

/** What a statement runs on if it needs no transaction of its own. */
export type Queryable = Db | Tx

/** @param log for tests: receives every statement that Postgres answered */
export function createDb(pool: pg.Pool, { log }: Pick<KyselyConfig, 'log'> = {}): Db {
  return new Kysely<unknown>({ dialect: new PoolDialect(pool), ...(log && { log }) })
}

/**
 * A list as the text of a Postgres array. Only for values that need no quotes, such as ids, numbers and names of states. The
 * driver's own conversion checks every element for characters to escape, which is slow for large batches.
 */
export function plainArray(values: readonly (string | number | null)[]): string {
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`
}

/** Like `plainArray`, for any text. Adjacent values are often equal, so a repeated value is quoted only once. */
export function quotedArray(values: readonly string[]): string {
  let last: string | undefined
  let quoted = ''
  const quote = (value: string): string => {
    if (value !== last) quoted = `"${value.replaceAll(/["\\]/g, '\\$&')}"`
    last = value
    return quoted
  }
  return `{${values.map(quote).join(',')}}`
}
