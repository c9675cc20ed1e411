import { createHash, randomBytes } from 'node:crypto'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { delay } from './clock.ts'
import { PostgresError } from './postgres-error.ts'
import { isAlive, startOf } from './process-table.ts'

/** What Carillon itself keeps in a data directory begins with this. Postgres has nothing of that name. */
export const OWN_PREFIX = '.carillon-'
const CLAIM = /^\.carillon-claim-(\d+)-([0-9a-f]{12})-[0-9a-f]{8}$/

/** Two processes that start at the same instant may each see the other and give way: they try again. */
const TRIES = 4
const PAUSE_MS = 50

/**
 * Reserves a data directory for this process until `release`: nothing else may make, serve or remove the database in it.
 *
 * A claim is an empty file whose name says which process made it, so it appears whole or not at all, and the claim of a
 * process that has ended counts for nothing. Each process writes its claim first and looks for others second. So of two at
 * least one sees the other, and never do both go on. Postgres' own `postmaster.pid` cannot do this: it does not exist yet
 * while the database is made.
 */
export async function claimDirectory(dataDir: string): Promise<{ readonly release: () => void }> {
  for (let tries = 1; ; tries += 1) {
    const claim = `${OWN_PREFIX}claim-${process.pid}-${hashedStart(process.pid)}-${randomBytes(4).toString('hex')}`
    const release = (): void => rmSync(join(dataDir, claim), { force: true })
    writeFileSync(join(dataDir, claim), '', { mode: 0o644 })
    const other = claimsOf(dataDir).find(({ name }) => name !== claim)
    if (!other) {
      removeDeadClaims(dataDir)
      return { release }
    }
    release()
    if (tries === TRIES) throw directoryInUse(dataDir, other.pid)
    await delay(PAUSE_MS * (1 + Math.random()))
  }
}

/** The process that serves a data directory, or is about to; undefined if there is none. */
export function findClaimant(dataDir: string): number | undefined {
  return claimsOf(dataDir)[0]?.pid
}

export function directoryInUse(dataDir: string, pid?: number): PostgresError {
  const holder = pid === undefined ? 'another Postgres' : `process ${pid}`
  return new PostgresError('directory_in_use', `the data directory ${dataDir} is in use by ${holder}`)
}

/** Removes the claims of processes that have ended. Their names never come back, so this races with nothing. */
function removeDeadClaims(dataDir: string): void {
  const living = new Set(claimsOf(dataDir).map(({ name }) => name))
  for (const name of readdirSync(dataDir)) {
    if (CLAIM.test(name) && !living.has(name)) rmSync(join(dataDir, name), { force: true })
  }
}

/** Of processes that are alive. */
function claimsOf(dataDir: string): { name: string; pid: number }[] {
  return readdirSync(dataDir).flatMap((name) => {
    const [, pid, start] = CLAIM.exec(name) ?? []
    const isLiving = pid !== undefined && isAlive(Number(pid)) && hashedStart(Number(pid)) === start
    return isLiving ? [{ name, pid: Number(pid) }] : []
  })
}

function hashedStart(pid: number): string {
  return createHash('sha256').update(startOf(pid)).digest('hex').slice(0, 12)
}
