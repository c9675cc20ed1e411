import type { Schedule } from '@carillon/api'
import { describeCadence, type Schedule as CoreSchedule } from '@carillon/core'

import { grantWarning } from './grant-warning.ts'
import { toInstant, toInstantOrNull } from './instant.ts'

/** @param now what warnings are told by, in epoch milliseconds */
export function toSchedule(schedule: CoreSchedule, now: number): Schedule {
  return {
    id: schedule.id,
    tenant: schedule.tenantId,
    project: schedule.projectId,
    ownerSubject: schedule.ownerSubject,
    name: schedule.name,
    // What is deleted is not found, so it is never told.
    state: schedule.state as Schedule['state'],
    revision: schedule.revision,
    // The same but for lists that are not to be changed.
    cadence: schedule.cadence as Schedule['cadence'],
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
