import {
  GRANT_WARNING_MS,
  explainRun,
  type ModuleReasons,
  type ApiKey,
  type AuditReport,
  type EditPlan,
  type LiveEvent,
  type Grant,
  type Member,
  type Preview,
  type Run,
  type RunWithAttempts,
  type Schedule,
  type SchedulePreview,
  type Secret,
  type TargetKind,
  type Tenant,
  type TranscriptLine,
} from '@carillon/api'
import {
  describeCadence,
  type Attempt,
  type Audit,
  type ApiKey as CoreApiKey,
  type CreatePlan,
  type EditPlan as CoreEditPlan,
  type EventLogEntry,
  type Finding,
  type Grant as CoreGrant,
  type Member as CoreMember,
  type Preview as CorePreview,
  type Run as CoreRun,
  type Schedule as CoreSchedule,
  type ScheduleChange,
  type SecretRecord,
  type SlotPreview,
  type TargetKind as CoreTargetKind,
  type TenantLimits,
  type TranscriptLine as CoreTranscriptLine,
} from '@carillon/core'

// Every value of core that an answer holds is converted here: instants become ISO 8601 text, `tenantId` becomes `tenant`.
// The parameter `now` is in epoch milliseconds and decides about warnings only.

/** Writes an instant in UTC, to the millisecond. */
export function toInstant(epochMs: number): string {
  return new Date(epochMs).toISOString()
}

function toInstantOrNull(epochMs: number | null): string | null {
  return epochMs === null ? null : toInstant(epochMs)
}

export function toSchedule(schedule: CoreSchedule, now: number): Schedule {
  return {
    id: schedule.id,
    tenant: schedule.tenantId,
    project: schedule.projectId,
    ownerSubject: schedule.ownerSubject,
    name: schedule.name,
    state: schedule.state,
    revision: schedule.revision,
    cadence: schedule.cadence,
    description: describeCadence(schedule.cadence),
    target: schedule.target,
    policy: schedule.policy,
    grantId: schedule.grantId,
    grantExpiresAt: toInstantOrNull(schedule.grantExpiresAt),
    grantWarning: grantWarning({ expiresAt: schedule.grantExpiresAt, isRevoked: schedule.isGrantRevoked }, now),
    nextSlotAt: toInstantOrNull(schedule.nextSlotAt),
    dueAt: toInstantOrNull(schedule.dueAt),
    skippedSlots: schedule.excludedSlots.map(toInstant),
    runCount: schedule.runCount,
    failureCount: schedule.failureCount,
    consecutiveFailures: schedule.consecutiveFailures,
    createdBy: schedule.createdBy,
    createdAt: toInstant(schedule.createdAt),
    updatedBy: schedule.updatedBy,
    updatedAt: toInstantOrNull(schedule.updatedAt),
    pausedBy: schedule.pausedBy,
    pausedReason: schedule.pausedReason,
    pausedAt: toInstantOrNull(schedule.pausedAt),
  }
}

/** Writes a schedule's revision as an ETag, which If-Match repeats. */
export function toEtag({ revision }: Pick<CoreSchedule, 'revision'>): string {
  return `"${revision}"`
}

export function toScheduleChange(line: ScheduleChange) {
  return {
    change: line.change,
    revision: line.revision,
    nextSlotAt: toInstantOrNull(line.nextSlotAt),
    scheduledFor: toInstantOrNull(line.scheduledFor),
    actor: line.actor,
    reason: line.reason,
    changedAt: toInstant(line.changedAt),
  }
}

/** Converts the instant of a slot and keeps its other fields. */
export function toSlot<Slot extends SlotPreview>({
  scheduledFor,
  ...rest
}: Slot): Omit<Slot, 'scheduledFor'> & { scheduledFor: string } {
  return { ...rest, scheduledFor: toInstant(scheduledFor) }
}

export function toTargetKind({ policies, schema, ...kind }: CoreTargetKind): TargetKind {
  return {
    ...kind,
    schema: { ...schema },
    policies: policies.map(({ cadenceKinds, policy }) => ({ cadenceKinds: [...cadenceKinds], policy })),
  }
}

export function toPreview({ description, slots, warnings }: CorePreview): Preview {
  return {
    description,
    slots: slots.map(toSlot),
    warnings: warnings.map(({ at, ...warning }) => ({ ...warning, at: toInstant(at) })),
  }
}

export function toSchedulePreview(plan: CreatePlan): SchedulePreview {
  const { name, cadence, target, policy, grantId, ownerSubject } = plan
  return { name, cadence, target, policy, grantId, ownerSubject, ...toPreview(plan), ...kindPreview(plan) }
}

function kindPreview({ preview }: Pick<CreatePlan, 'preview'>): { preview?: unknown } {
  return preview === undefined ? {} : { preview }
}

export function toEditPlan(plan: CoreEditPlan, now: number): EditPlan {
  const { schedule, added, removed, comparedUntil } = plan
  return {
    schedule: toSchedule(schedule, now),
    added: added.map(toSlot),
    removed: removed.map(toSlot),
    comparedUntil: toInstantOrNull(comparedUntil),
    ...kindPreview(plan),
  }
}

/** @param reasons those of modules, for the explanation */
export function toRun(run: CoreRun, reasons?: ModuleReasons): Run {
  return {
    id: run.id,
    scheduleId: run.scheduleId,
    scheduledFor: toInstant(run.scheduledFor),
    revision: run.revision,
    trigger: run.trigger,
    state: run.state,
    reason: run.reason,
    explanation: explainRun(run, reasons),
    // Never negative, even if the clock of Postgres was set back meanwhile.
    latenessMs: Math.max(0, run.begunAt - run.scheduledFor),
    attemptCount: run.attemptCount,
    begunAt: toInstant(run.begunAt),
    startedAt: toInstantOrNull(run.startedAt),
    waitsFor: run.waitsFor,
    retryAt: toInstantOrNull(run.retryAt),
    deadlineAt: toInstantOrNull(run.deadlineAt),
    heartbeatAt: toInstantOrNull(run.heartbeatAt),
    reference: run.reference,
    cancelRequestedAt: toInstantOrNull(run.cancelRequestedAt),
    completedAt: toInstantOrNull(run.completedAt),
    error: run.error,
  }
}

export function toRunWithAttempts(
  run: CoreRun & { readonly attempts: readonly Attempt[] },
  reasons?: ModuleReasons,
): RunWithAttempts {
  return { ...toRun(run, reasons), attempts: run.attempts.map(toAttempt) }
}

function toAttempt({ startedAt, completedAt, ...attempt }: Attempt): RunWithAttempts['attempts'][number] {
  return { ...attempt, startedAt: toInstant(startedAt), completedAt: toInstant(completedAt) }
}

export function toTranscriptLine({ at, ...line }: CoreTranscriptLine): TranscriptLine {
  return { ...line, at: toInstant(at) }
}

export function toEvent(entry: EventLogEntry, now: number, reasons?: ModuleReasons): LiveEvent {
  const { cursor: id } = entry
  if (entry.kind === 'run') return { id, event: 'run', data: { change: entry.change, run: toRun(entry.run, reasons) } }
  const { change, scheduleId, schedule } = entry
  return {
    id,
    event: 'schedule',
    data: { change, scheduleId, schedule: schedule === null ? null : toSchedule(schedule, now) },
  }
}

export function toGrant(grant: CoreGrant, now: number): Grant {
  return {
    id: grant.id,
    subject: grant.subject,
    scopes: [...grant.scopes],
    billingAccountId: grant.billingAccountId,
    scheduleId: grant.scheduleId,
    expiresAt: toInstantOrNull(grant.expiresAt),
    warning: grantWarning({ expiresAt: grant.expiresAt, isRevoked: grant.revokedAt !== null }, now),
    revokedAt: toInstantOrNull(grant.revokedAt),
    revokedBy: grant.revokedBy,
    createdBy: grant.createdBy,
    createdAt: toInstant(grant.createdAt),
  }
}

/** The warning that people see. Postgres' clock, not this function, decides whether a grant permits a run (I10). */
export function grantWarning(
  { expiresAt, isRevoked }: { readonly expiresAt: number | null; readonly isRevoked: boolean },
  now: number,
): Grant['warning'] {
  if (isRevoked) return 'revoked'
  if (expiresAt === null || expiresAt - now > GRANT_WARNING_MS) return null
  return expiresAt <= now ? 'expired' : 'expires_soon'
}

export function toApiKey(apiKey: CoreApiKey): ApiKey {
  return {
    id: apiKey.id,
    tenant: apiKey.tenantId,
    project: apiKey.projectId,
    subject: apiKey.subject,
    role: apiKey.role,
    prefix: apiKey.prefix,
    createdBy: apiKey.createdBy,
    createdAt: toInstant(apiKey.createdAt),
    revokedBy: apiKey.revokedBy,
    revokedAt: toInstantOrNull(apiKey.revokedAt),
  }
}

export function toMember({ subject, role, addedBy, addedAt, removedBy, removedAt }: CoreMember): Member {
  return { subject, role, addedBy, addedAt: toInstant(addedAt), removedBy, removedAt: toInstantOrNull(removedAt) }
}

/** Copies field by field, so that no other field of core's record can leak. */
export function toSecret({ name, version, createdBy, createdAt, updatedBy, updatedAt }: SecretRecord): Secret {
  return { name, version, createdBy, createdAt: toInstant(createdAt), updatedBy, updatedAt: toInstant(updatedAt) }
}

export function toTenant({ tenantId, allowedHosts, updatedAt, ...limits }: TenantLimits): Tenant {
  return {
    tenant: tenantId,
    ...limits,
    allowedHosts: allowedHosts === null ? null : [...allowedHosts],
    updatedAt: toInstantOrNull(updatedAt),
  }
}

type LatestAudit = NonNullable<AuditReport['latest']>

interface Report {
  readonly latest: Audit | undefined
  readonly auditedUntil: number | null
  /** Findings of the caller's project; for the installation also those that belong to no project. */
  readonly findings: readonly Finding[]
  /** I9: totals over all tenants are for the installation only. */
  readonly hasTotals: boolean
}

const HIDDEN_TOTALS = {
  schedules: null,
  slots: null,
  unreadable: null,
  truncated: null,
  findings: null,
  repaired: null,
} satisfies Partial<LatestAudit>

export function toAuditReport({ latest, auditedUntil, findings, hasTotals }: Report): AuditReport {
  return {
    latest: latest === undefined ? null : toAudit(latest, hasTotals),
    auditedUntil: toInstantOrNull(auditedUntil),
    findings: findings.map(toFinding),
  }
}

function toAudit({ id, isWhole, from, to, startedAt, completedAt, ...totals }: Audit, hasTotals: boolean): LatestAudit {
  return {
    id,
    isWhole,
    from: toInstant(from),
    to: toInstant(to),
    startedAt: toInstant(startedAt),
    completedAt: toInstant(completedAt),
    ...(hasTotals ? totals : HIDDEN_TOTALS),
  }
}

function toFinding(finding: Finding): AuditReport['findings'][number] {
  return {
    kind: finding.kind,
    scheduleId: finding.scheduleId,
    scheduledFor: toInstantOrNull(finding.scheduledFor),
    detail: finding.detail,
    isRepaired: finding.isRepaired,
    foundAt: toInstant(finding.foundAt),
    seenAt: toInstant(finding.seenAt),
  }
}
