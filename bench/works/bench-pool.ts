import { Pool } from 'pg'

import { parentOf } from './process-usage.ts'

export interface BenchPool extends Pool, AsyncDisposable {}

/** A pool for loading and checking around a measurement, without the time limits of Carillon's own pool. */
export function openPool(url: string): BenchPool {
  const pool = new Pool({ connectionString: url, max: 4 })
  // If a part exceeds its time limit, its database is dropped while this pool is open.
  pool.on('error', () => undefined)
  return Object.assign(pool, { [Symbol.asyncDispose]: () => pool.end() })
}

/** The process id of the postmaster, whose children serve the connections. */
export async function postmasterOf(pool: BenchPool): Promise<number> {
  const { rows } = await pool.query<{ pid: number }>('select pg_backend_pid() as pid')
  return parentOf(rows[0]?.pid ?? 0)
}
