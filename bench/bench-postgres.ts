import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createDb, createPool, ensurePartitions, migrate } from '@carillon/core'
import { startPostgres } from '@carillon/postgres'

/** A Postgres of its own at its default durability, gone when the measurement is over. */
export interface BenchPostgres extends AsyncDisposable {
  /** A migrated database; its url. */
  createDatabase(name: string): Promise<string>
}

export async function startBenchPostgres(): Promise<BenchPostgres> {
  const folder = mkdtempSync(join(tmpdir(), 'carillon-bench-'))
  // As root, Postgres runs as another user, who has to get to its data.
  chmodSync(folder, 0o711)
  const postgres = await startPostgres({ dataDir: join(folder, 'data') })
  return {
    async createDatabase(name) {
      const admin = createPool({ connectionString: postgres.url })
      await admin.query(`create database ${name}`)
      await admin.end()
      const url = new URL(postgres.url)
      url.pathname = `/${name}`
      const pool = createPool({ connectionString: url.href })
      await migrate(pool)
      const db = createDb(pool)
      await ensurePartitions(db, { from: new Date(), to: new Date() })
      await db.destroy()
      return url.href
    },
    async [Symbol.asyncDispose]() {
      await postgres.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
