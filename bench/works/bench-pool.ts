import { Pool } from 'pg'

export interface BenchPool extends Pool, AsyncDisposable {}

/** For what is loaded and looked at around a measurement: without the limits of time of Carillon's own pool. */
export function openPool(url: string): BenchPool {
  const pool = new Pool({ connectionString: url, max: 4 })
  // A part that ran out of patience has its database dropped under it.
  pool.on('error', () => undefined)
  return Object.assign(pool, { [Symbol.asyncDispose]: () => pool.end() })
}
