import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
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

/** A folder in memory, where Linux has one. The tests make some 200,000 files, most of them databases. */
const MEMORY = '/dev/shm'
const MEMORY_MIN_BYTES = 4 * 2 ** 30

/** One Postgres for the whole test run; each test file makes databases of its own in it. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = makeTemporaryFolder()
  // Every process of this run makes its temporary files in it. What a run that is killed leaves, the next one removes.
  process.env['TMPDIR'] = folder
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

/** In memory if there is enough of it and programs may run from there; a container often has 64 MB, and runs none. */
function makeTemporaryFolder(): string {
  for (const parent of [MEMORY, tmpdir()]) {
    try {
      const { bavail, bsize } = statfsSync(parent)
      if (parent === MEMORY && bavail * bsize < MEMORY_MIN_BYTES) continue
      removeAbandoned(parent)
      const folder = mkdtempSync(join(parent, `carillon-tests-${process.pid}-`))
      // As root, Postgres runs as another user, who has to get to its data.
      chmodSync(folder, 0o711)
      if (canRun(folder)) return folder
      rmSync(folder, { recursive: true })
    } catch {
      // Not there, or not ours to write to.
    }
  }
  throw new Error(`expected a folder for temporary files that programs may run from, got ${tmpdir()}: set TMPDIR`)
}

/** The folders of test runs that were killed. */
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
