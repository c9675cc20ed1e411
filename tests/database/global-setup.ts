import { accessSync, chmodSync, constants, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { startPostgres } from '@carillon/postgres'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** Of the one Postgres of this test run, as superuser. */
    readonly postgresUrl: string
  }
}

/** A folder in memory, where Linux has one. Each test file makes databases, of some 400 files each. */
const MEMORY = '/dev/shm'
const MEMORY_MIN_BYTES = 4 * 2 ** 30

/** One Postgres for the whole test run; each test file makes databases of its own in it. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(hasMemory() ? MEMORY : tmpdir(), 'carillon-tests-'))
  // As root, Postgres runs as another user, who has to get to its data.
  chmodSync(folder, 0o711)
  const postgres = await startPostgres({
    dataDir: join(folder, 'data'),
    settings: {
      max_connections: '400',
      // Nothing here outlives the run, so nothing needs to reach the disk. What is measured or crashed on purpose starts
      // a server of its own.
      fsync: 'off',
      synchronous_commit: 'off',
      full_page_writes: 'off',
      autovacuum_naptime: '5s',
    },
  })
  project.provide('postgresUrl', postgres.url)
  return async () => {
    await postgres.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A container may have a small one. */
function hasMemory(): boolean {
  try {
    accessSync(MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(MEMORY)
    return bavail * bsize >= MEMORY_MIN_BYTES
  } catch {
    return false
  }
}
