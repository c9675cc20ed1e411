import { z } from 'zod'

import { accessOperations } from './access-operations.ts'
import { batchOperations } from './batch-operations.ts'
import { byId } from './by-id.ts'
import { checkedByCore } from './component.ts'
import { expected } from './expected.ts'
import { mayBeRepeated } from './idempotency-key.ts'
import type { Operation } from './operation.ts'
import type { ProblemCode } from './problem.ts'
import { auditReport, auditRequested } from './schemas/audit.ts'
import { feedEvents } from './schemas/feed.ts'
import { preview, previewRequest, schedulePreview } from './schemas/preview.ts'
import { run, runPage, runQuery, runWithAttempts } from './schemas/run.ts'
import {
  editPlan,
  editQuery,
  pauseRequest,
  schedule,
  scheduleEdit,
  scheduleHistory,
  scheduleInput,
  schedulePage,
  scheduleQuery,
  slotRequest,
  slotsQuery,
  upcomingSlots,
} from './schemas/schedule.ts'

const ETAG = { ETag: 'The revision, quoted.' }

const ifMatch = z
  .string(expected('an If-Match such as "3"'))
  .regex(
    /^(?:\*|(?:W\/)?"[1-9]\d{0,8}"(?:[ \t]*,[ \t]*(?:W\/)?"[1-9]\d{0,8}"){0,9})$/,
    expected('an If-Match such as "3", a list of at most 10, or *'),
  )
  .meta({ description: 'The ETag of what was read; refused with 412 if it has changed since. `*` means any.' })

const mayMatch = z.object({ 'if-match': ifMatch.optional() })
const lastEventId = z.string(expected('an id of an event'))

/** Every operation by its id. */
export const operations = {
  createSchedule: {
    method: 'post',
    path: '/schedules',
    tag: 'schedules',
    summary: 'Make a schedule',
    role: 'admin',
    headers: mayBeRepeated,
    body: checkedByCore(scheduleInput),
    success: {
      status: 201,
      description: 'The schedule.',
      schema: schedule,
      headers: { ...ETAG, Location: 'Where it is.', 'Idempotency-Replayed': '`true` if the answer was given before.' },
    },
    problems: ['quota_exceeded', 'idempotency_in_flight', 'idempotency_key_reused'],
  },
  previewSchedule: {
    method: 'post',
    path: '/schedules/preview',
    tag: 'schedules',
    summary: 'See what a create would make',
    description: 'Refuses what a create would refuse, and makes nothing.',
    role: 'member',
    body: checkedByCore(scheduleInput),
    success: { status: 200, description: 'Every default filled in, and the next slots.', schema: schedulePreview },
    problems: [],
  },
  ...batchOperations,
  listSchedules: {
    method: 'get',
    path: '/schedules',
    tag: 'schedules',
    summary: 'List schedules, the newest first',
    role: 'member',
    query: scheduleQuery,
    success: { status: 200, description: 'A page.', schema: schedulePage },
    problems: [],
  },
  getCalendar: {
    method: 'get',
    path: '/schedules.ics',
    tag: 'schedules',
    summary: 'Upcoming slots as a calendar',
    description:
      'For programs that subscribe to calendars: they may send the key as the password of basic authentication.',
    role: 'member',
    success: { status: 200, description: 'iCalendar.', mediaType: 'text/calendar' },
    problems: [],
  },
  getSchedule: {
    method: 'get',
    path: '/schedules/{id}',
    tag: 'schedules',
    summary: 'Get a schedule',
    role: 'member',
    params: byId,
    success: { status: 200, description: 'The schedule.', schema: schedule, headers: ETAG },
    problems: ['schedule_not_found'],
  },
  editSchedule: {
    method: 'patch',
    path: '/schedules/{id}',
    tag: 'schedules',
    summary: 'Edit a schedule, or see what an edit would do',
    description: 'Takes effect at once. A run that has begun goes on as it was. Needs If-Match.',
    role: 'admin',
    params: byId,
    query: editQuery,
    headers: z.object({ 'if-match': ifMatch.optional() }),
    body: checkedByCore(scheduleEdit),
    success: {
      status: 200,
      description: 'The schedule; with `dryRun=true` the plan.',
      schema: z.union([schedule, editPlan]),
      headers: ETAG,
    },
    problems: ['schedule_not_found', 'revision_conflict', 'revision_required'],
  },
  deleteSchedule: {
    method: 'delete',
    path: '/schedules/{id}',
    tag: 'schedules',
    summary: 'Delete a schedule',
    description: 'What waits is cancelled, what is under way ends by itself. Its runs stay in the ledger.',
    role: 'admin',
    params: byId,
    headers: mayMatch,
    success: { status: 204, description: 'Deleted.' },
    problems: ['schedule_not_found', 'revision_conflict'],
  },
  pauseSchedule: {
    method: 'post',
    path: '/schedules/{id}/pause',
    tag: 'schedules',
    summary: 'Pause a schedule',
    role: 'admin',
    params: byId,
    headers: mayMatch,
    body: pauseRequest,
    success: { status: 200, description: 'The schedule.', schema: schedule, headers: ETAG },
    problems: ['schedule_not_found', 'state_conflict', 'revision_conflict'],
  },
  resumeSchedule: {
    method: 'post',
    path: '/schedules/{id}/resume',
    tag: 'schedules',
    summary: 'Resume a schedule',
    description: 'Goes on with the next slot ahead. What passed meanwhile is not made up for.',
    role: 'admin',
    params: byId,
    headers: mayMatch,
    success: { status: 200, description: 'The schedule.', schema: schedule, headers: ETAG },
    problems: ['schedule_not_found', 'state_conflict', 'revision_conflict'],
  },
  runSchedule: {
    method: 'post',
    path: '/schedules/{id}/run',
    tag: 'schedules',
    summary: 'Run a schedule now',
    description: 'Also while it is paused. The cadence goes on as if it had not been.',
    role: 'admin',
    params: byId,
    success: { status: 201, description: 'The run.', schema: run, headers: { Location: 'Where it is.' } },
    problems: ['schedule_not_found', 'overlap', 'grant_invalid'],
  },
  skipSlot: {
    method: 'post',
    path: '/schedules/{id}/skip',
    tag: 'schedules',
    summary: 'Take out one slot ahead',
    description: 'It leaves the line `skipped: excluded`.',
    role: 'admin',
    params: byId,
    body: slotRequest,
    success: { status: 200, description: 'The schedule.', schema: schedule, headers: ETAG },
    problems: ['schedule_not_found', 'slot_not_found'],
  },
  restoreSlot: {
    method: 'post',
    path: '/schedules/{id}/restore',
    tag: 'schedules',
    summary: 'Take a skip back',
    role: 'admin',
    params: byId,
    body: slotRequest,
    success: { status: 200, description: 'The schedule.', schema: schedule, headers: ETAG },
    problems: ['schedule_not_found', 'slot_not_found'],
  },
  listRuns: {
    method: 'get',
    path: '/schedules/{id}/runs',
    tag: 'runs',
    summary: 'List the runs of a schedule, the latest slot first',
    role: 'member',
    params: byId,
    query: runQuery,
    success: { status: 200, description: 'A page.', schema: runPage },
    problems: ['schedule_not_found'],
  },
  listSlots: {
    method: 'get',
    path: '/schedules/{id}/slots',
    tag: 'schedules',
    summary: 'List slots ahead',
    role: 'member',
    params: byId,
    query: slotsQuery,
    success: { status: 200, description: 'The slots, in order.', schema: upcomingSlots },
    problems: ['schedule_not_found'],
  },
  getHistory: {
    method: 'get',
    path: '/schedules/{id}/history',
    tag: 'schedules',
    summary: 'Who did what to a schedule',
    role: 'member',
    params: byId,
    success: { status: 200, description: 'The changes, in order.', schema: scheduleHistory },
    problems: ['schedule_not_found'],
  },
  getRun: {
    method: 'get',
    path: '/runs/{id}',
    tag: 'runs',
    summary: 'Get a run with its attempts',
    role: 'member',
    params: byId,
    success: { status: 200, description: 'The run.', schema: runWithAttempts },
    problems: ['run_not_found'],
  },
  cancelRun: {
    method: 'post',
    path: '/runs/{id}/cancel',
    tag: 'runs',
    summary: 'Cancel a run',
    description:
      'At once if it waits; through its target if it is under way, and then this answers before it has ended.',
    role: 'admin',
    params: byId,
    success: { status: 200, description: 'The run.', schema: run },
    problems: ['run_not_found', 'state_conflict'],
  },
  previewCadence: {
    method: 'post',
    path: '/cadence/preview',
    tag: 'cadence',
    summary: 'See what a cadence would do',
    role: 'member',
    body: previewRequest,
    success: { status: 200, description: 'In words, slots and warnings.', schema: preview },
    problems: [],
  },
  followEvents: {
    method: 'get',
    path: '/events',
    tag: 'events',
    summary: 'Follow what happens in the project',
    description:
      'Server-sent events from the ledger: `run`, `schedule` and `reset`, with RunEvent, ScheduleEvent and ResetEvent as ' +
      'data, without gaps and in the order in which transactions began to write. So two changes of one thing that were ' +
      'made at the same time may come in either order; what is shown of it is as it is now. Without a Last-Event-ID from now on.',
    role: 'member',
    headers: z.object({
      'last-event-id': lastEventId.optional().meta({ description: 'Go on after this event. Browsers send it.' }),
    }),
    query: z.strictObject({
      after: lastEventId.optional().meta({ description: 'The same, for clients that cannot set headers.' }),
    }),
    success: {
      status: 200,
      description: 'A stream that does not end.',
      schema: z.union([feedEvents.run, feedEvents.schedule, feedEvents.reset]),
      mediaType: 'text/event-stream',
    },
    problems: [],
  },
  ...accessOperations,
  getAudit: {
    method: 'get',
    path: '/audit',
    tag: 'audit',
    summary: 'What the latest audit found',
    description:
      'Of the caller’s own project, and how far the audit has got. Counts over all projects are for the key of the installation.',
    role: 'member',
    success: { status: 200, description: 'The report.', schema: auditReport },
    problems: [],
  },
  requestAudit: {
    method: 'post',
    path: '/audit',
    tag: 'audit',
    summary: 'Ask for an audit',
    description:
      'A worker begins within seconds. It compares every slot that the ledger remembers, and every run with its attempts, ' +
      'and mends what it can.',
    role: 'admin',
    isForInstallation: true,
    success: { status: 202, description: 'A worker will do it.', schema: auditRequested },
    problems: [],
  },
} as const satisfies Readonly<Record<string, Operation>>

export type OperationId = keyof typeof operations

export const operationIds = Object.keys(operations) as readonly OperationId[]

/** What an operation may be refused with. `invalid_input` always: an unknown parameter in the query is one. */
export function problemsOf(operation: Operation): ProblemCode[] {
  return [
    'invalid_input',
    ...(operation.body === undefined ? [] : (['malformed_json', 'body_too_large', 'unsupported_media_type'] as const)),
    'unauthenticated',
    // Whoever was removed from a project may not even read it.
    'forbidden',
    ...operation.problems,
    'rate_limited',
    'unavailable',
  ]
}
