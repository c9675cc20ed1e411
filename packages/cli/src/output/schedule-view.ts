import { HTTP_METHOD_DEFAULT, type Preview, type Schedule } from '@carillon/api'

import { formatLocal, formatRelative } from './format-time.ts'
import { styled, styleOfState } from './style.ts'
import { fieldLines, tableLines, type Column } from './table.ts'
import type { Screen } from './terminal.ts'

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
    ['Changed', updatedAt === null ? '' : `${at(updatedAt)} by ${schedule.updatedBy ?? 'unknown'}`],
    ['Paused', pausedAt === null ? '' : `${at(pausedAt)} by ${schedule.pausedBy ?? 'unknown'}`],
    ['Revision', String(schedule.revision)],
  ])
}

/** The next slots of a cadence, and the daylight saving changes that affect them. */
export function previewLines(
  screen: Screen,
  { preview: ofKind, ...preview }: Preview & { readonly preview?: unknown },
  timezone: string,
  now: number,
): string[] {
  const { description, slots, warnings } = preview
  const columns: Column<Preview['slots'][number]>[] = [
    { title: 'LOCAL', of: ({ scheduledFor }) => formatLocal(scheduledFor, timezone) },
    { title: 'UTC', of: ({ scheduledFor }) => scheduledFor },
    { title: '', of: ({ scheduledFor }) => formatRelative(scheduledFor, now) },
  ]
  return [
    styled(screen, 'bold', description),
    '',
    ...(slots.length === 0 ? ['It has no further slots.'] : tableLines(screen, columns, slots)),
    ...(warnings.length === 0 ? [] : ['']),
    ...warnings.map(({ message }) => styled(screen, 'yellow', message)),
    ...kindPreviewLines(screen, ofKind),
  ]
}

/** What the kind of a target shows in a preview: none if it shows nothing. */
export function kindPreviewLines(screen: Screen, preview: unknown): string[] {
  if (preview === undefined) return []
  return ['', styled(screen, 'bold', 'The target says'), ...JSON.stringify(preview, null, 2).split('\n')]
}

type Target = Schedule['target']
type HttpTarget = Extract<Target, { readonly kind: 'http' }>

/** A target of another kind has a `kind` of any text, so TypeScript cannot narrow by it. */
export function isHttpTarget(target: Target): target is HttpTarget {
  const http: HttpTarget['kind'] = 'http'
  return target.kind === http
}

/** `POST https://…` for an http target, the whole JSON for any other. */
export function targetText(target: Target): string {
  return isHttpTarget(target) ? `${target.method ?? HTTP_METHOD_DEFAULT} ${target.url}` : JSON.stringify(target)
}

function stateText({ state, pausedReason }: Schedule): string {
  return pausedReason === null ? state : `${state}: ${pausedReason}`
}

/** Advice is added only if the user has to act. */
function grantText(
  { grantId, grantExpiresAt, grantWarning }: Schedule,
  at: (instant: string | null) => string,
): string {
  if (grantWarning === 'revoked') return `${grantId}, revoked: give the schedule another one`
  if (grantExpiresAt === null) return grantId
  const verb = grantWarning === 'expired' ? 'expired' : 'expires'
  const advice = grantWarning === null ? '' : ': renew it'
  return `${grantId}, ${verb} ${at(grantExpiresAt)}${advice}`
}

function policyText(policy: Schedule['policy']): string {
  const { overlap, missed, autoPauseThreshold, retry, spreadSeconds, runLimit } = policy
  const parts = [
    `overlap ${overlap}`,
    `missed ${missed}`,
    `${retry.maxAttempts} ${retry.maxAttempts === 1 ? 'attempt' : 'attempts'}`,
    autoPauseThreshold === 0 ? 'never pauses itself' : `pauses after ${autoPauseThreshold} failed runs`,
    ...(spreadSeconds === 0 ? [] : [`spread over ${spreadSeconds} s`]),
    ...(runLimit === undefined ? [] : [`complete after ${runLimit} ${runLimit === 1 ? 'run' : 'runs'}`]),
  ]
  return parts.join(', ')
}

function runsText({ runCount, failureCount, consecutiveFailures }: Schedule): string {
  const recent = consecutiveFailures === 0 ? '' : `, including the last ${consecutiveFailures}`
  return `${runCount}, ${failureCount} failed${recent}`
}
