import type { Schedule } from '@carillon/api'

import { formatLocal, formatRelative } from './format-time.ts'
import { styleOfState } from './style.ts'
import { fieldLines, tableLines, type Column } from './table.ts'
import type { Terminal } from './terminal.ts'

type Screen = Pick<Terminal, 'width' | 'hasColor'>

export function zoneOf({ cadence }: Pick<Schedule, 'cadence'>): string {
  return cadence.timezone ?? 'UTC'
}

export function scheduleTable(screen: Screen, schedules: readonly Schedule[], now: number): string[] {
  const columns: Column<Schedule>[] = [
    { title: 'NAME', of: ({ name }) => name, shrinksTo: 12 },
    { title: 'STATE', of: ({ state }) => state, style: ({ state }) => styleOfState(state) },
    { title: 'WHEN', of: ({ description }) => description, shrinksTo: 12 },
    { title: 'NEXT', of: ({ nextSlotAt }) => (nextSlotAt === null ? '-' : formatRelative(nextSlotAt, now)) },
    { title: 'RUNS', of: ({ runCount }) => String(runCount) },
    { title: 'FAILED', of: ({ failureCount }) => String(failureCount) },
    { title: 'ID', of: ({ id }) => id, style: () => 'dim' },
  ]
  return tableLines(screen, columns, schedules)
}

export function scheduleFields(screen: Screen, schedule: Schedule, now: number): string[] {
  const { target, policy } = schedule
  const zone = zoneOf(schedule)
  const at = (instant: string | null): string => (instant === null ? '' : formatLocal(instant, zone))
  const { nextSlotAt, dueAt, pausedAt, updatedAt } = schedule
  return fieldLines(screen, [
    ['Name', schedule.name],
    ['Id', schedule.id],
    ['State', stateText(schedule)],
    ['When', schedule.description],
    ['Next slot', nextSlotAt === null ? '' : `${at(nextSlotAt)} (${formatRelative(nextSlotAt, now)})`],
    ['Due', dueAt === nextSlotAt ? '' : at(dueAt)],
    ['Skipped slots', schedule.skippedSlots.map(at).join(', ')],
    ['Target', targetText(target)],
    ['Policy', policyText(policy)],
    ['Grant', grantText(schedule, at)],
    ['Runs', runsText(schedule)],
    ['Owner', schedule.ownerSubject],
    ['Created', `${at(schedule.createdAt)} by ${schedule.createdBy}`],
    ['Changed', updatedAt === null ? '' : `${at(updatedAt)} by ${schedule.updatedBy ?? 'nobody'}`],
    ['Paused', pausedAt === null ? '' : `${at(pausedAt)} by ${schedule.pausedBy ?? 'nobody'}`],
    ['Revision', String(schedule.revision)],
  ])
}

function stateText({ state, pausedReason }: Schedule): string {
  return pausedReason === null ? state : `${state}: ${pausedReason}`
}

/** A grant says something only to who has to see to it. */
function grantText(
  { grantId, grantExpiresAt, grantWarning }: Schedule,
  at: (instant: string | null) => string,
): string {
  if (grantWarning === 'revoked') return `${grantId}, revoked: give the schedule another`
  if (grantExpiresAt === null) return grantId
  const verb = grantWarning === 'expired' ? 'expired' : 'expires'
  const advice = grantWarning === null ? '' : ': renew it'
  return `${grantId}, ${verb} ${at(grantExpiresAt)}${advice}`
}

function targetText(target: Schedule['target']): string {
  if (target.kind !== 'http') return JSON.stringify(target)
  const { url, method } = target as { readonly url: string; readonly method?: string }
  return `${method ?? 'POST'} ${url}`
}

function policyText({ overlap, missed, autoPauseThreshold, retry, spreadSeconds }: Schedule['policy']): string {
  const parts = [
    `overlap ${overlap}`,
    `missed ${missed}`,
    `${retry.maxAttempts} ${retry.maxAttempts === 1 ? 'attempt' : 'attempts'}`,
    autoPauseThreshold === 0 ? 'never pauses itself' : `pauses after ${autoPauseThreshold} failed runs`,
    ...(spreadSeconds === 0 ? [] : [`spread over ${spreadSeconds} s`]),
  ]
  return parts.join(', ')
}

function runsText({ runCount, failureCount, consecutiveFailures }: Schedule): string {
  const row = consecutiveFailures === 0 ? '' : `, the last ${consecutiveFailures} in a row`
  return `${runCount}, of which ${failureCount} failed${row}`
}
