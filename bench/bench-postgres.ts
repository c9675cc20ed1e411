import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createDb, createPool, ensurePartitions, migrate } from '@carillon/core'
import { startPostgres } from '@carillon/postgres'

import { databasesOf, type Databases } from './databases.ts'

/** A Postgres for one run. It is removed with the run. */
export interface BenchPostgres extends Databases, AsyncDisposable {
  /** The URL of the default database. */
  readonly url: string
  version(): Promise<string>
  /** Its durability and memory settings. */
  settings(): Promise<Record<string, string>>
}

const SETTINGS = ['fsync', 'synchronous_commit', 'full_page_writes', 'wal_level', 'max_wal_size', 'shared_buffers']

const WATCHED = { shared_preload_libraries: 'pg_stat_statements', 'pg_stat_statements.track': 'all' }

/** Settings for smoke runs, whose numbers mean nothing. With durable settings they would spend half of their time waiting for the disk. */
const NOT_DURABLE = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }

export interface BenchPostgresOptions {
  /** True keeps the default durability of Postgres. False makes commits not wait for the disk. @default true */
  readonly isDurable?: boolean
  /** Records the cost of each statement. The recording has a cost itself. @default false */
  readonly isWatched?: boolean
}

export async function startBenchPostgres(options: BenchPostgresOptions = {}): Promise<BenchPostgres> {
  const { isDurable = true, isWatched = false } = options
  const folder = mkdtempSync(join(tmpdir(), 'carillon-bench-'))
  // If root starts it, Postgres runs as another user, which must be able to reach its data.
  chmodSync(folder, 0o711)
  const settings = { ...(isDurable ? {} : NOT_DURABLE), ...(isWatched ? WATCHED : {}) }
  const postgres = await startPostgres({ dataDir: join(folder, 'data'), settings })
  const admin = createPool({ connectionString: postgres.url, maxConnections: 2 })
  return {
    ...databasesOf({ admin, url: postgres.url, migrate: migrateAt }),
    url: postgres.url,
    async version() {
      const { rows } = await admin.query<{ server_version: string }>('show server_version')
      return rows[0]?.server_version ?? 'unknown'
    },
    async settings() {
      const { rows } = await admin.query<{ name: string; value: string }>(
        `select name, current_setting(name) as value from unnest($1::text[]) as name`,
        [SETTINGS],
      )
      return Object.fromEntries(rows.map(({ name, value }) => [name, value]))
    },
    async [Symbol.asyncDispose]() {
      await admin.end()
      await postgres.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function migrateAt(url: string): Promise<void> {
  const pool = createPool({ connectionString: url })
  await migrate(pool)
  const db = createDb(pool)
  await ensurePartitions(db, { from: new Date(), to: new Date() })
  await pool.end()
}
