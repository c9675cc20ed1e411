import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { startPostgres } from '@carillon/postgres'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** The URL of the one Postgres of this test run, as superuser. */
    readonly postgresUrl: string
  }
}

/** A folder in memory, if Linux has one. The tests create very many files, mostly of databases. */
const MEMORY = '/dev/shm'
const MEMORY_MIN_BYTES = 4 * 2 ** 30

/** Starts one Postgres for the whole test run. Each test file creates its own databases in it. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = makeTemporaryFolder()
  // Every process of this run creates its temporary files here. The next run removes what a killed run left.
  process.env['TMPDIR'] = folder
  const postgres = await startPostgres({
    dataDir: join(folder, 'data'),
    settings: {
      max_connections: '400',
      // No data of a test run is kept, so no write needs to reach the disk. Benchmarks and crash tests start their own server.
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

/** A folder in memory if that is large enough and may contain programs. In a container it often has 64 MB and is `noexec`. */
function makeTemporaryFolder(): string {
  for (const parent of [MEMORY, tmpdir()]) {
    try {
      const { bavail, bsize } = statfsSync(parent)
      if (parent === MEMORY && bavail * bsize < MEMORY_MIN_BYTES) continue
      removeAbandoned(parent)
      const folder = mkdtempSync(join(parent, `carillon-tests-${process.pid}-`))
      // If root starts it, Postgres runs as another user, which must be able to reach its data.
      chmodSync(folder, 0o711)
      if (canRun(folder)) return folder
      rmSync(folder, { recursive: true })
    } catch {
      // The folder does not exist, or this user may not write to it.
    }
  }
  throw new Error(`expected a folder for temporary files that programs may run from, got ${tmpdir()}: set TMPDIR`)
}

/** Removes the folders of test runs that were killed. */
function removeAbandoned(parent: string): void {
  for (const name of readdirSync(parent)) {
    const [, pid] = /^carillon-tests-(\d+)-/.exec(name) ?? []
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(parent, name), { recursive: true, force: true })
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function canRun(folder: string): boolean {
  const script = join(folder, 'try')
  writeFileSync(script, '#!/bin/sh\n', { mode: 0o755 })
  const { status } = spawnSync(script)
  rmSync(script)
  return status === 0
}
