import type { Audit } from '../audit/audits.ts'
import type { FindingCount } from '../audit/store/findings.ts'
import { missingMigrationsText, type MigrationStatus } from '../db/migrate.ts'
import type { SchemaDrift } from '../db/schema-check.ts'
import type { PostgresInfo } from '../db/server.ts'
import type { Json } from '../kernel/json.ts'
import type { WorkerRecord } from '../pipeline/store/workers.ts'
import type { ActiveKind, WaitingKind } from './store/target-kinds.ts'

/** The result of one check. */
export interface Check {
  readonly name:
    | `module ${string}`
    | 'modules'
    | 'database'
    | 'schema'
    | 'clock'
    | 'tzdata'
    | 'workers'
    | 'runs'
    | 'services'
    | 'audit'
    | 'secrets'
  /** `failed`: something is broken now. `warning`: something may be broken, or will be. */
  readonly status: 'ok' | 'warning' | 'failed'
  /** What was found and, unless it is ok, what to do. */
  readonly message: string
  readonly detail?: Json
}

const VERSION_LEAST = 15
const ANSWER_SLOW_MS = 1000
const SKEW_WARNING_MS = 1000
const SKEW_FAILED_MS = 30_000
const DRIFT_NAMED_MAX = 5
const FAILING_NAMED_MAX = 5
/**
 * The audit check warns if the last full audit is older. A full audit takes a day at most; half a day more allows for a night without
 * workers.
 */
const AUDIT_DUE_MS = 36 * 3_600_000
/** The audit check warns if slots that came due longer ago are not compared yet. */
const AUDIT_BEHIND_MS = 600_000
/** The runs check warns if a run has been due for longer. Workers normally take a due run within milliseconds. */
const RUN_OVERDUE_MS = 60_000
/** The runs check warns if a backlog is older. Workers insert the lines of backlogs continuously, a thousand per transaction. */
const BACKLOG_OVERDUE_MS = 300_000
/** If a service has failed for longer, the check is `failed` and not a `warning`: the service will not recover by itself. */
const SERVICE_FAILED_MS = 60_000

export function checkDatabase({ version, versionNumber }: PostgresInfo, answeredInMs: number): Check {
  const answered = `answered in ${Math.ceil(answeredInMs)} ms`
  const detail = { version, answeredInMs }
  if (versionNumber < VERSION_LEAST * 10_000) {
    const message = `expected Postgres ${VERSION_LEAST} or later, got ${version}: upgrade Postgres`
    return { name: 'database', status: 'failed', message, detail }
  }
  if (answeredInMs > ANSWER_SLOW_MS) {
    const message = `Postgres ${version} ${answered}, so slots start at least that late: check the database's load and the network`
    return { name: 'database', status: 'warning', message, detail }
  }
  return { name: 'database', status: 'ok', message: `Postgres ${version} ${answered}`, detail }
}

/** @param drift null while migrations are pending: the drift is not computed then */
export function checkSchema({ applied, pending }: MigrationStatus, drift: SchemaDrift | null): Check {
  const latest = applied.at(-1)?.name ?? null
  if (drift === null || pending.length > 0) {
    const message = missingMigrationsText(pending)
    return { name: 'schema', status: 'failed', message, detail: { applied: latest, pending } }
  }
  const { missing, unexpected } = drift
  const detail = { applied: latest, pending, missing, unexpected }
  const lines = [...missing.map((line) => `missing ${line}`), ...unexpected.map((line) => `unexpected ${line}`)]
  if (lines.length === 0) {
    return {
      name: 'schema',
      status: 'ok',
      message: `matches the ${count(applied.length, 'applied migration')}`,
      detail,
    }
  }
  const rest = lines.length > DRIFT_NAMED_MAX ? ` (and ${lines.length - DRIFT_NAMED_MAX} more)` : ''
  const message = `changed by hand since it was migrated: ${lines.slice(0, DRIFT_NAMED_MAX).join('; ')}${rest}`
  // Something unexpected may be an index that the operator added, so it is a warning. Carillon needs what is missing.
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
      : "; slots follow the database's clock, so none starts early, but this machine's log times are off: " +
        'synchronize the clocks by NTP'
  return { name: 'clock', status, message: `this machine's clock is ${distance}${advice}`, detail: { skewMs } }
}

export function checkTzdata(own: string | null, workers: readonly WorkerRecord[]): Check {
  const alive = workers.filter(({ isAlive }) => isAlive)
  const detail = { own, workers: alive.map(({ name, tzdataVersion }) => ({ name, tzdataVersion })) }
  const others = alive.filter(({ tzdataVersion }) => tzdataVersion !== null && tzdataVersion !== own)
  if (others.length === 0) {
    const same = alive.filter(({ tzdataVersion }) => tzdataVersion === own).length
    const silent = alive.length > same ? `; ${count(alive.length - same, 'worker')} with no reported version` : ''
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
    const message = `no worker is alive, but schedules of ${named} are active: start a worker`
    return { name: 'workers', status: 'warning', message, detail }
  }
  if (unserved.length > 0) {
    const message = `no living worker serves the active schedules of ${named}: start one with these targets`
    return { name: 'workers', status: 'failed', message, detail }
  }
  const serving = kinds.length > 0 ? `, serving ${kinds.join(', ')}` : ''
  return { name: 'workers', status: 'ok', message: `${count(alive.length, 'living worker')}${serving}`, detail }
}

/**
 * Checks the waiting runs by target kind, and whether a worker takes them.
 * @param backlogAgeMs the age of the oldest backlog of slots without lines; null if there is none
 */
export function checkRuns(
  waiting: readonly WaitingKind[],
  workers: readonly WorkerRecord[],
  backlogAgeMs: number | null,
): Check {
  const served = new Set(workers.filter(({ isAlive }) => isAlive).flatMap(({ targetKinds }) => targetKinds))
  const total = waiting.reduce((sum, kind) => sum + kind.waiting, 0)
  const said = `${count(total, 'run')} waiting`
  const detail = waiting.map((kind) => ({ ...kind, isServed: served.has(kind.targetKind) }))
  const unserved = waiting.filter(({ targetKind }) => !served.has(targetKind))
  if (unserved.length > 0) {
    const named = unserved.map((kind) => `${kind.targetKind} (${kind.waiting})`).join(', ')
    const kinds = unserved.map(({ targetKind }) => targetKind).join(',')
    const message =
      `${said}, and no living worker serves those of ${named}: ` +
      `start a worker with these targets (carillon worker --targets ${kinds}), or cancel the runs`
    return { name: 'runs', status: 'failed', message, detail }
  }
  const [oldest] = waiting.toSorted((a, b) => b.overdueMs - a.overdueMs)
  if (oldest !== undefined && oldest.overdueMs > RUN_OVERDUE_MS) {
    const message =
      `${said}; the oldest, of ${oldest.targetKind}, has been due for ${formatMs(oldest.overdueMs)}, and no worker took it: ` +
      'start more workers if they are busy, and see what they log if they are not'
    return { name: 'runs', status: 'warning', message, detail }
  }
  if (backlogAgeMs !== null && backlogAgeMs > BACKLOG_OVERDUE_MS) {
    const message =
      `slots that came due before a change have waited for their lines for ${formatMs(backlogAgeMs)}: ` +
      'start a worker if none is alive, and see what its backlog writer logs'
    return { name: 'runs', status: 'warning', message, detail }
  }
  return { name: 'runs', status: 'ok', message: said, detail }
}

/** Checks the services of the live workers, as each reported with its last heartbeat. */
export function checkServices(workers: readonly WorkerRecord[]): Check {
  const failing = workers
    .filter(({ isAlive }) => isAlive)
    .flatMap(({ id, name, failing: services }) =>
      Object.entries(services ?? {}).map(([service, failure]) => ({ workerId: id, worker: name, service, ...failure })),
    )
    .toSorted((a, b) => b.forMs - a.forMs)
  if (failing.length === 0) return { name: 'services', status: 'ok', message: 'no service fails', detail: [] }
  const named = failing.map(
    ({ worker, service, failures, forMs, error }) =>
      `${service} of ${worker} has failed ${count(failures, 'time')} in a row, for ${formatMs(forMs)} ("${error}")`,
  )
  const rest = named.length > FAILING_NAMED_MAX ? ` (and ${named.length - FAILING_NAMED_MAX} more)` : ''
  const isLasting = failing.some(({ forMs }) => forMs > SERVICE_FAILED_MS)
  const remedy = isLasting
    ? 'do as the error says, and see what the worker logs'
    : 'it is tried again; look once more in a minute'
  const message = `${named.slice(0, FAILING_NAMED_MAX).join('; ')}${rest}: ${remedy}`
  return { name: 'services', status: isLasting ? 'failed' : 'warning', message, detail: failing }
}

/** The state of the audit. */
export interface AuditFacts {
  readonly latest: Audit | undefined
  /** Slots that came due up to this instant have been compared; null before the first comparison. */
  readonly auditedUntil: number | null
  /** Findings of the last audit, and lost slots that were repaired within the last day, counted by kind and project. */
  readonly findings: readonly FindingCount[]
  readonly workers: readonly WorkerRecord[]
  readonly now: number
}

export function checkAudit({ latest, auditedUntil, findings, workers, now }: AuditFacts): Check {
  const detail = {
    latest: latest === undefined ? null : { ...latest },
    auditedUntil,
    findings: findings.map((found) => ({ ...found })),
  }
  const at = latest === undefined ? '' : new Date(latest.completedAt).toISOString()
  if (latest !== undefined && latest.findings > 0) {
    const kinds = findings.map(
      ({ kind, tenantId, projectId, count: number }) =>
        `${number} ${kind} in ${tenantId === null ? 'no project' : `${tenantId}/${projectId ?? ''}`}`,
    )
    const message =
      `the audit of ${at} found ${count(latest.findings, 'fault')}, ${latest.repaired} of them repaired` +
      `${kinds.length === 0 ? '' : ` (${kinds.join(', ')})`}: read its findings with \`carillon audit\`, each says what to do`
    return { name: 'audit', status: 'failed', message, detail }
  }
  const hasServed = (ms: number): boolean => workers.some(({ isAlive, startedAt }) => isAlive && now - startedAt > ms)
  const behindMs = auditedUntil === null ? Infinity : now - auditedUntil
  if (behindMs > AUDIT_BEHIND_MS && hasServed(AUDIT_BEHIND_MS)) {
    const found =
      auditedUntil === null ? 'none compared yet' : `those of the last ${formatMs(behindMs)} still to compare`
    const message =
      `expected slots to be compared with the ledger within ${formatMs(AUDIT_BEHIND_MS)}, got ${found}: ` +
      'see whether the service auditor fails; if not, more slots come due than it compares in its share of the time'
    return { name: 'audit', status: 'warning', message, detail }
  }
  if ((latest === undefined || now - latest.completedAt > AUDIT_DUE_MS) && hasServed(AUDIT_DUE_MS)) {
    const found = latest === undefined ? 'none at all' : `the latest of ${at}`
    const message = `expected a full audit within the last ${formatMs(AUDIT_DUE_MS)}, got ${found}: see what the workers log`
    return { name: 'audit', status: 'warning', message, detail }
  }
  if (latest === undefined) {
    return { name: 'audit', status: 'ok', message: 'no audit yet: a worker begins one when it starts', detail }
  }
  const until = auditedUntil === null ? '' : `, and slots up to ${formatMs(Math.max(0, behindMs))} ago are compared`
  const message = `the audit of ${at} found nothing among ${count(latest.slots, 'slot')}${until}`
  return { name: 'audit', status: 'ok', message, detail }
}

/** @param unreadable the number of stored secrets that no key can decrypt */
export function checkSecrets({ kept, unreadable }: { readonly kept: number; readonly unreadable: number }): Check {
  const detail = { kept, unreadable }
  if (unreadable === 0) {
    const message = kept === 0 ? 'no secrets' : `${count(kept, 'secret')}, encrypted with the keys at hand`
    return { name: 'secrets', status: 'ok', message, detail }
  }
  const message =
    `expected the keys that ${count(kept, 'secret')} were encrypted with, got none that opens ${unreadable} of them: ` +
    'restore secrets.key, or append the lost key to CARILLON_SECRETS_KEY, separated by a comma, or put these secrets again'
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
