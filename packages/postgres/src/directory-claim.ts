import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { delay } from './clock.ts'
import { PostgresError } from './postgres-error.ts'
import { isAlive, startTimeOf } from './process-table.ts'

/** The folder inside a data directory that holds a copy of the Postgres program while that copy runs. */
export const PROGRAM_FOLDER = '.carillon-program'
const CLAIM = /^\.carillon-claim-(\d+)-([0-9a-f]{12})-[0-9a-f]{8}$/

/** Two processes that start at the same instant may each see the other and back off. So each tries this often, then throws. */
const TRIES = 4
const PAUSE_MS = 50

export interface Claim {
  readonly release: () => void
  /** False once the claim file was removed, for instance with the whole directory. */
  readonly isHeld: () => boolean
}

/**
 * Reserves a data directory for this process until `release`: no other process may create, serve or remove the database.
 *
 * A claim is an empty file whose name identifies its process, so it is created atomically, and the claim of a process that
 * has ended is ignored. Each process writes its claim before it looks for others. So at least one of two processes sees the
 * other, and they never both continue. The `postmaster.pid` of Postgres cannot do this: it does not exist while initdb runs.
 * Neither a claim nor `postmaster.pid` reveals a process in another container: a volume must belong to one container at a time.
 */
export async function claimDirectory(dataDir: string): Promise<Claim> {
  for (let tries = 1; ; tries += 1) {
    const claim = `.carillon-claim-${process.pid}-${hashedStart(process.pid)}-${randomBytes(4).toString('hex')}`
    const path = join(dataDir, claim)
    const release = (): void => rmSync(path, { force: true })
    writeFileSync(path, '', { mode: 0o644 })
    const other = claimsOf(dataDir).find(({ name }) => name !== claim)
    if (!other) {
      removeDeadClaims(dataDir)
      return { release, isHeld: () => existsSync(path) }
    }
    release()
    if (tries === TRIES) throw directoryInUse(dataDir, other.pid)
    await delay(PAUSE_MS * (1 + Math.random()))
  }
}

/** True if Carillon keeps this entry in the data directory; it is not part of the database. */
export function isOwnEntry(name: string): boolean {
  return name === PROGRAM_FOLDER || CLAIM.test(name)
}

/** The id of the process that has claimed a data directory, to run Postgres on it; undefined if there is none. */
export function findClaimant(dataDir: string): number | undefined {
  return claimsOf(dataDir)[0]?.pid
}

export function directoryInUse(dataDir: string, pid?: number): PostgresError {
  const holder = pid === undefined ? 'another Postgres' : `process ${pid}`
  return new PostgresError('directory_in_use', `the data directory ${dataDir} is in use by ${holder}`)
}

/** Removes the claims of processes that have ended. Claim names are unique, so this cannot remove a later claim. */
function removeDeadClaims(dataDir: string): void {
  const living = new Set(claimsOf(dataDir).map(({ name }) => name))
  for (const name of readdirSync(dataDir)) {
    if (CLAIM.test(name) && !living.has(name)) rmSync(join(dataDir, name), { force: true })
  }
}

/** The claims of processes that are alive. */
function claimsOf(dataDir: string): { name: string; pid: number }[] {
  return readdirSync(dataDir).flatMap((name) => {
    const [, pid, start] = CLAIM.exec(name) ?? []
    return pid !== undefined && isSame(Number(pid), start) ? [{ name, pid: Number(pid) }] : []
  })
}

/** True if the process that wrote a claim still runs. If the system does not report start times, the id alone decides. */
function isSame(pid: number, start: string | undefined): boolean {
  return isAlive(pid) && (startTimeOf(pid) === '' || hashedStart(pid) === start)
}

function hashedStart(pid: number): string {
  return createHash('sha256').update(startTimeOf(pid)).digest('hex').slice(0, 12)
}
