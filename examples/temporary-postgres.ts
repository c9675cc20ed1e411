/** A migrated Postgres in a temporary folder, for the examples that embed the library. An application has its own. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createPool, migrate } from '@carillon/core'
import { startPostgres } from '@carillon/postgres'

export async function startTemporaryPostgres() {
  const folder = mkdtempSync(join(tmpdir(), 'carillon-example-'))
  chmodSync(folder, 0o711)
  const postgres = await startPostgres({ dataDir: join(folder, 'data') })
  const pool = createPool({ connectionString: postgres.url })
  await migrate(pool)
  return {
    url: postgres.url,
    pool,
    async [Symbol.asyncDispose](): Promise<void> {
      await pool.end()
      await postgres.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
