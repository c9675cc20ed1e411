import type { Json } from '../json.ts'
import type { ActiveKind } from '../store/active-kinds.ts'
import type { Audit } from '../store/audits.ts'
import type { MigrationStatus } from '../store/migrate.ts'
import type { SchemaDrift } from '../store/schema-drift.ts'
import type { Server } from '../store/server.ts'
import type { WaitingJobs } from '../store/waiting-jobs.ts'
import type { WorkerRecord } from '../store/workers.ts'

/** What a doctor says about one thing. */
export interface Check {
  readonly name: 'database' | 'schema' | 'clock' | 'tzdata' | 'workers' | 'jobs' | 'audit' | 'secrets'
  /** `failed`: something is broken now. `warning`: it will be, or may be. */
  readonly status: 'ok' | 'warning' | 'failed'
  /** What was found and, unless that is well, what to do. */
  readonly message: string
  readonly detail?: Json
}

const VERSION_LEAST = 15
const ANSWER_SLOW_MS = 1000
const SKEW_WARNING_MS = 1000
const SKEW_FAILED_MS = 30_000
const DRIFT_NAMED_MAX = 5
const OVERDUE_WARNING_MS = 60_000
/** A day, and half of one for a night in which nobody was there. */
const AUDIT_DUE_MS = 36 * 3_600_000

export function checkDatabase({ version, versionNumber }: Server, answeredInMs: number): Check {
  const answered = `answered in ${Math.ceil(answeredInMs)} ms`
  const detail = { version, answeredInMs }
  if (versionNumber < VERSION_LEAST * 10_000) {
    const message = `expected Postgres ${VERSION_LEAST} or later, got ${version}: upgrade the server`
    return { name: 'database', status: 'failed', message, detail }
  }
  if (answeredInMs > ANSWER_SLOW_MS) {
    const message = `Postgres ${version} ${answered}: slots will be as late; look at its load and the network`
    return { name: 'database', status: 'warning', message, detail }
  }
  return { name: 'database', status: 'ok', message: `Postgres ${version} ${answered}`, detail }
}

/** @param drift null as long as migrations are pending: until then it says nothing */
export function checkSchema({ applied, pending }: MigrationStatus, drift: SchemaDrift | null): Check {
  const latest = applied.at(-1)?.name ?? null
  if (drift === null || pending.length > 0) {
    const message = `the database lacks ${pending.join(', ')}: run \`carillon migrate up\``
    return { name: 'schema', status: 'failed', message, detail: { applied: latest, pending } }
  }
  const { missing, unexpected } = drift
  const detail = { applied: latest, pending, missing, unexpected }
  const lines = [...missing.map((line) => `missing ${line}`), ...unexpected.map((line) => `unexpected ${line}`)]
  if (lines.length === 0) {
    return { name: 'schema', status: 'ok', message: `as the ${applied.length} migrations made it`, detail }
  }
  const rest = lines.length > DRIFT_NAMED_MAX ? ` (and ${lines.length - DRIFT_NAMED_MAX} more)` : ''
  const message = `changed by hand since it was migrated: ${lines.slice(0, DRIFT_NAMED_MAX).join('; ')}${rest}`
  // What is there besides may be somebody's index; what lacks or differs held something up.
  return { name: 'schema', status: missing.length > 0 ? 'failed' : 'warning', message, detail }
}

/** @param skewMs by how much this machine's clock is ahead of the database's; negative if it is behind */
export function checkSkew(skewMs: number): Check {
  const amount = Math.abs(skewMs)
  const status = amount > SKEW_FAILED_MS ? 'failed' : amount > SKEW_WARNING_MS ? 'warning' : 'ok'
  const distance = `${formatMs(amount)} ${skewMs < 0 ? 'behind' : 'ahead of'} the database's`
  const advice =
    status === 'ok'
      ? ''
      : ": what is due the database's clock decides, so no slot is early, but logs and lines disagree; set the clocks by NTP"
  return { name: 'clock', status, message: `this machine's clock is ${distance}${advice}`, detail: { skewMs } }
}

export function checkTzdata(own: string | null, workers: readonly WorkerRecord[]): Check {
  const alive = workers.filter(({ isAlive }) => isAlive)
  const detail = { own, workers: alive.map(({ name, tzdataVersion }) => ({ name, tzdataVersion })) }
  const others = alive.filter(({ tzdataVersion }) => tzdataVersion !== null && tzdataVersion !== own)
  if (others.length === 0) {
    const same = alive.filter(({ tzdataVersion }) => tzdataVersion === own).length
    const silent = alive.length > same ? `; ${alive.length - same} do not say` : ''
    const message = `time zone rules ${own ?? 'of an unknown version'}, the same in ${count(same, 'living worker')}${silent}`
    return { name: 'tzdata', status: 'ok', message, detail }
  }
  const named = others.map(({ name, tzdataVersion }) => `${name} has ${tzdataVersion}`).join(', ')
  const message =
    `expected one version of the time zone rules, got ${own ?? 'an unknown one'} here while ${named}: ` +
    'slots may be computed differently; run the same Node everywhere'
  return { name: 'tzdata', status: 'warning', message, detail }
}

export function checkWorkers(workers: readonly WorkerRecord[], active: readonly ActiveKind[]): Check {
  const alive = workers.filter(({ isAlive }) => isAlive)
  const served = new Set(alive.flatMap(({ targetKinds }) => targetKinds))
  const kinds = [...served].toSorted()
  const unserved = active.filter(({ targetKind }) => !served.has(targetKind))
  const detail = {
    workers: alive.map(({ id, name, version, targetKinds }) => ({ id, name, version, targetKinds })),
    targetKinds: kinds,
    active: active.map(({ targetKind, schedules }) => ({ targetKind, schedules })),
  }
  const named = unserved.map(({ targetKind, schedules }) => `${targetKind} (${schedules})`).join(', ')
  if (alive.length === 0 && active.length > 0) {
    const message = `no worker lives, and there are active schedules of ${named}: start one`
    return { name: 'workers', status: 'warning', message, detail }
  }
  if (unserved.length > 0) {
    const message = `no living worker serves the active schedules of ${named}: start one with these targets`
    return { name: 'workers', status: 'failed', message, detail }
  }
  const serving = kinds.length > 0 ? `, serving ${kinds.join(', ')}` : ''
  return { name: 'workers', status: 'ok', message: `${count(alive.length, 'living worker')}${serving}`, detail }
}

export function checkJobs(jobs: readonly WaitingJobs[]): Check {
  const waiting = jobs.reduce((sum, job) => sum + job.waiting, 0)
  const exhausted = jobs.filter((job) => job.exhausted > 0)
  const latest = jobs.toSorted((a, b) => b.overdueMs - a.overdueMs)[0]
  const detail = jobs.map(({ task, waiting, overdueMs, exhausted }) => ({ task, waiting, overdueMs, exhausted }))
  const complaints = [
    ...(latest !== undefined && latest.overdueMs > OVERDUE_WARNING_MS
      ? [`the oldest, of ${latest.task}, is overdue by ${formatMs(latest.overdueMs)}: see that a worker for it lives`]
      : []),
    ...exhausted.map(
      ({ task, exhausted }) => `${count(exhausted, 'job')} of ${task} out of attempts: look why it fails`,
    ),
  ]
  const message = [`${count(waiting, 'job')} waiting`, ...complaints].join('; ')
  return { name: 'jobs', status: complaints.length > 0 ? 'warning' : 'ok', message, detail }
}

export function checkAudit(latest: Audit | undefined, workers: readonly WorkerRecord[], now: number): Check {
  const detail = latest === undefined ? null : { ...latest }
  const at = latest === undefined ? '' : new Date(latest.completedAt).toISOString()
  if (latest !== undefined && latest.findings > 0) {
    const message =
      `the audit of ${at} found ${count(latest.findings, 'fault')}, ${latest.repaired} of them mended: ` +
      'read its findings'
    return { name: 'audit', status: 'failed', message, detail }
  }
  const isDue = latest === undefined || now - latest.completedAt > AUDIT_DUE_MS
  if (isDue && workers.some(({ isAlive, startedAt }) => isAlive && now - startedAt > AUDIT_DUE_MS)) {
    const found = latest === undefined ? 'none at all' : `the latest of ${at}`
    const message = `expected an audit within the last ${formatMs(AUDIT_DUE_MS)}, got ${found}: see what the workers say`
    return { name: 'audit', status: 'warning', message, detail }
  }
  if (latest === undefined) {
    return { name: 'audit', status: 'ok', message: 'no audit yet: workers make one every night', detail }
  }
  const message = `the audit of ${at} found nothing among ${count(latest.slots, 'slot')}`
  return { name: 'audit', status: 'ok', message, detail }
}

/** @param unreadable how many of those that are kept no key at hand opens */
export function checkSecrets({ kept, unreadable }: { readonly kept: number; readonly unreadable: number }): Check {
  const detail = { kept, unreadable }
  if (unreadable === 0) {
    const message = kept === 0 ? 'no secrets' : `${count(kept, 'secret')}, encrypted with the keys at hand`
    return { name: 'secrets', status: 'ok', message, detail }
  }
  const message =
    `expected the keys that ${count(kept, 'secret')} were encrypted with, got none that opens ${unreadable} of them: ` +
    'restore secrets.key, or put the lost key into CARILLON_SECRETS_KEY, after a comma behind the present one; ' +
    'or put these secrets again'
  return { name: 'secrets', status: 'warning', message, detail }
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

function formatMs(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 120_000) return `${(ms / 1000).toFixed(1)} s`
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`
}
