import { migrate, migrateDown, migrationStatus } from '@carillon/core'

import { withDatabase } from './database-access.ts'
import { speakingOf } from './database.ts'
import type { Settings } from './settings.ts'

export type MigrationStatus = Awaited<ReturnType<typeof migrationStatus>>

export interface Migrations {
  /** Brings the database up to this version. */
  up(): Promise<{ applied: string[] }>
  /** Takes back every migration above `to`; 0 takes everything, all schedules and the whole ledger included. */
  down(to: number): Promise<{ reverted: string[] }>
  status(): Promise<MigrationStatus>
}

/** The schema of an installation's database. Throws ServiceError if it cannot be reached or is of another history. */
export function migrationsOf(settings: Settings): Migrations {
  return {
    up: () => withDatabase(settings, { isMade: true }, (pool, url) => speakingOf(url, () => migrate(pool))),
    down: (to) =>
      withDatabase(settings, { isMade: false }, (pool, url) => speakingOf(url, () => migrateDown(pool, { to }))),
    status: () =>
      withDatabase(settings, { isMade: false }, (pool, url) => speakingOf(url, () => migrationStatus(pool))),
  }
}
