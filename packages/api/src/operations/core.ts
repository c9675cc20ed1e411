import { z } from 'zod'

import { checkedByCore } from '../component.ts'
import { expected } from '../expected.ts'
import type { Operation } from '../operation.ts'
import { auditReport, auditRequested } from '../schemas/audit.ts'
import { liveEvents } from '../schemas/event.ts'
import { run, runPage, runQuery, runWithAttempts } from '../schemas/run.ts'
import {
  createdBatch,
  editPlan,
  editQuery,
  pauseRequest,
  previewedBatch,
  schedule,
  scheduleBatch,
  scheduleEdit,
  historyPage,
  historyQuery,
  scheduleInput,
  schedulePage,
  schedulePreview,
  scheduleQuery,
} from '../schemas/schedule.ts'
import { preview, previewRequest, slotRequest, slotsQuery, upcomingSlots } from '../schemas/slot.ts'
import { targetKinds } from '../schemas/target-kind.ts'
import { transcriptEvents, transcriptPage, transcriptQuery } from '../schemas/transcript.ts'
import { idParams, mayBeRepeated, mayMatch } from './parameters.ts'

const ETAG = { ETag: 'The revision, quoted.' }
const REPLAYED = { 'Idempotency-Replayed': '`true` if this is the answer to an earlier request with the same key.' }

const lastEventId = z.string(expected('an id of an event'))

/** Where a stream of server-sent events continues. */
const streamPosition = {
  headers: z.object({
    'last-event-id': lastEventId
      .optional()
      .meta({ description: 'The stream continues after this event. Browsers send the header when they reconnect.' }),
  }),
  query: z.strictObject({
    after: lastEventId
      .optional()
      .meta({ description: 'The same as `Last-Event-ID`, for clients that cannot set headers.' }),
  }),
}

/** Operations on schedules, runs, cadences, events and audits. */
export const coreOperations = {
  createSchedule: {
    method: 'post',
    path: '/schedules',
    tag: 'schedules',
    summary: 'Create a schedule',
    role: 'admin',
    headers: mayBeRepeated,
    body: checkedByCore(scheduleInput),
    success: {
      status: 201,
      description: 'The schedule.',
      schema: schedule,
      headers: { ...ETAG, Location: 'The URL of the schedule.', ...REPLAYED },
    },
    problems: ['quota_exceeded', 'idempotency_in_flight', 'idempotency_key_reused', 'target_hook_failed'],
  },
  previewSchedule: {
    method: 'post',
    path: '/schedules/preview',
    tag: 'schedules',
    summary: 'Preview a create',
    description: 'Refuses what a create would refuse, and creates nothing.',
    role: 'member',
    body: checkedByCore(scheduleInput),
    success: {
      status: 200,
      description: 'The schedule with every default filled in, and its next slots.',
      schema: schedulePreview,
    },
    problems: ['target_hook_failed'],
  },
  createSchedules: {
    method: 'post',
    path: '/schedules/batch',
    tag: 'schedules',
    summary: 'Create many schedules',
    description:
      'Creates all of them in one transaction, or none: for imports. A problem names its field, such as ' +
      '`schedules[17].cadence.expression`.',
    role: 'admin',
    headers: mayBeRepeated,
    body: scheduleBatch,
    success: {
      status: 201,
      description: 'The ids of the schedules.',
      schema: createdBatch,
      headers: REPLAYED,
    },
    problems: ['quota_exceeded', 'idempotency_in_flight', 'idempotency_key_reused', 'target_hook_failed'],
  },
  previewSchedules: {
    method: 'post',
    path: '/schedules/batch/preview',
    tag: 'schedules',
    summary: 'Preview a create of many',
    description: 'Refuses what the create would refuse, and creates nothing. It does not check quotas.',
    role: 'member',
    body: scheduleBatch,
    success: { status: 200, description: 'Each schedule as the create would make it.', schema: previewedBatch },
    problems: ['target_hook_failed'],
  },
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
    summary: 'Get upcoming slots as a calendar',
    description:
      'For programs that subscribe to calendars. They may send the key as the password of basic authentication.',
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
    params: idParams,
    success: { status: 200, description: 'The schedule.', schema: schedule, headers: ETAG },
    problems: ['schedule_not_found'],
  },
  editSchedule: {
    method: 'patch',
    path: '/schedules/{id}',
    tag: 'schedules',
    summary: 'Edit a schedule, or preview an edit',
    description:
      'The edit takes effect at once. A run that has begun continues with the revision that it began with. Requires If-Match.',
    role: 'admin',
    params: idParams,
    query: editQuery,
    headers: mayMatch,
    body: checkedByCore(scheduleEdit),
    success: {
      status: 200,
      description: 'The schedule; with `dryRun=true` the plan.',
      schema: z.union([schedule, editPlan]),
      headers: ETAG,
    },
    problems: ['schedule_not_found', 'revision_conflict', 'revision_required', 'target_hook_failed'],
  },
  deleteSchedule: {
    method: 'delete',
    path: '/schedules/{id}',
    tag: 'schedules',
    summary: 'Delete a schedule',
    description:
      'Waiting runs are cancelled, runs under way end by themselves. From now on the schedule, its history and its list of runs are ' +
      'not found. Its runs stay in the ledger, and each is found by its id.',
    role: 'admin',
    params: idParams,
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
    params: idParams,
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
    description: 'The schedule continues with the next future slot. Slots that passed during the pause do not run.',
    role: 'admin',
    params: idParams,
    headers: mayMatch,
    success: { status: 200, description: 'The schedule.', schema: schedule, headers: ETAG },
    problems: ['schedule_not_found', 'state_conflict', 'revision_conflict'],
  },
  runSchedule: {
    method: 'post',
    path: '/schedules/{id}/run',
    tag: 'schedules',
    summary: 'Run a schedule now',
    description:
      'A paused schedule runs too. The slots of the cadence stay as they are. The history of the schedule records the caller.',
    role: 'admin',
    params: idParams,
    success: { status: 201, description: 'The run.', schema: run, headers: { Location: 'The URL of the run.' } },
    problems: ['schedule_not_found', 'overlap', 'grant_invalid', 'state_conflict'],
  },
  skipSlot: {
    method: 'post',
    path: '/schedules/{id}/skip',
    tag: 'schedules',
    summary: 'Skip one future slot',
    description: 'When the slot comes due, the ledger records it as `skipped` with the reason `excluded`.',
    role: 'admin',
    params: idParams,
    body: slotRequest,
    success: { status: 200, description: 'The schedule.', schema: schedule, headers: ETAG },
    problems: ['schedule_not_found', 'slot_not_found'],
  },
  restoreSlot: {
    method: 'post',
    path: '/schedules/{id}/restore',
    tag: 'schedules',
    summary: 'Undo a skip',
    role: 'admin',
    params: idParams,
    body: slotRequest,
    success: { status: 200, description: 'The schedule.', schema: schedule, headers: ETAG },
    problems: ['schedule_not_found', 'slot_not_found'],
  },
  listTargetKinds: {
    method: 'get',
    path: '/target-kinds',
    tag: 'targets',
    summary: 'List the kinds of targets',
    description: 'All kinds that this server accepts in schedules, those of modules included.',
    role: 'member',
    success: { status: 200, description: 'The kinds, sorted by name.', schema: targetKinds },
    problems: [],
  },
  listRuns: {
    method: 'get',
    path: '/schedules/{id}/runs',
    tag: 'runs',
    summary: 'List the runs of a schedule, the latest slot first',
    role: 'member',
    params: idParams,
    query: runQuery,
    success: { status: 200, description: 'A page.', schema: runPage },
    problems: ['schedule_not_found'],
  },
  listSlots: {
    method: 'get',
    path: '/schedules/{id}/slots',
    tag: 'schedules',
    summary: 'List future slots',
    role: 'member',
    params: idParams,
    query: slotsQuery,
    success: { status: 200, description: 'The slots, in order.', schema: upcomingSlots },
    problems: ['schedule_not_found'],
  },
  getHistory: {
    method: 'get',
    path: '/schedules/{id}/history',
    tag: 'schedules',
    summary: 'List the changes of a schedule, and its requested and cancelled runs, the latest first',
    role: 'member',
    params: idParams,
    query: historyQuery,
    success: { status: 200, description: 'A page.', schema: historyPage },
    problems: ['schedule_not_found'],
  },
  getRun: {
    method: 'get',
    path: '/runs/{id}',
    tag: 'runs',
    summary: 'Get a run with its attempts',
    role: 'member',
    params: idParams,
    success: { status: 200, description: 'The run.', schema: runWithAttempts },
    problems: ['run_not_found'],
  },
  getTranscript: {
    method: 'get',
    path: '/runs/{id}/transcript',
    tag: 'runs',
    summary: 'Get what a run recorded',
    description:
      'The lines that the target recorded while the run ran, in order, across all attempts. Most targets record nothing. Lines are ' +
      'stored within about a quarter of a second, and kept as long as the run.',
    role: 'member',
    params: idParams,
    query: transcriptQuery,
    success: { status: 200, description: 'A page.', schema: transcriptPage },
    problems: ['run_not_found'],
  },
  followTranscript: {
    method: 'get',
    path: '/runs/{id}/transcript/live',
    tag: 'runs',
    summary: 'Follow what a run records',
    description:
      'Server-sent events: `line` with a TranscriptLine as data, for every line from the first one on, and `end` with a ' +
      'TranscriptEndEvent once the run is over. The stream ends with it; a browser would connect again, so close it then.',
    role: 'member',
    params: idParams,
    ...streamPosition,
    success: {
      status: 200,
      description: 'A stream that ends when the run is over.',
      schema: z.union([transcriptEvents.line, transcriptEvents.end]),
      mediaType: 'text/event-stream',
    },
    problems: ['run_not_found'],
  },
  cancelRun: {
    method: 'post',
    path: '/runs/{id}/cancel',
    tag: 'runs',
    summary: 'Cancel a run',
    description:
      'A waiting run ends at once. A run under way ends when its target stops, which may be after this answer. The history of the ' +
      'schedule records the caller. A further request for a run under way changes nothing.',
    role: 'admin',
    params: idParams,
    success: { status: 200, description: 'The run.', schema: run },
    problems: ['run_not_found', 'state_conflict'],
  },
  previewCadence: {
    method: 'post',
    path: '/cadence/preview',
    tag: 'cadence',
    summary: 'Preview a cadence',
    role: 'member',
    body: previewRequest,
    success: { status: 200, description: 'The cadence in plain English, its slots and its warnings.', schema: preview },
    problems: [],
  },
  followEvents: {
    method: 'get',
    path: '/events',
    tag: 'events',
    summary: 'Follow the events of the project',
    description:
      'Server-sent events: `run`, `schedule` and `reset`, with RunEvent, ScheduleEvent and ResetEvent as data, without gaps ' +
      'and in the order in which transactions began to write. Two concurrent changes of one run or schedule may come in ' +
      'either order; the data shows its present state. Without a Last-Event-ID the stream begins now.',
    role: 'member',
    ...streamPosition,
    success: {
      status: 200,
      description: 'A stream that does not end.',
      schema: z.union([liveEvents.run, liveEvents.schedule, liveEvents.reset]),
      mediaType: 'text/event-stream',
    },
    problems: [],
  },
  getAudit: {
    method: 'get',
    path: '/audit',
    tag: 'audit',
    summary: 'Get the report of the latest audit',
    description:
      'The report has the findings in the caller’s own project, and how far the audit has got. Only the admin key gets ' +
      'counts over all projects.',
    role: 'member',
    success: { status: 200, description: 'The report.', schema: auditReport },
    problems: [],
  },
  requestAudit: {
    method: 'post',
    path: '/audit',
    tag: 'audit',
    summary: 'Request an audit',
    description:
      'A worker begins the audit within seconds. It compares every slot within the retention of the ledger with its schedule, and ' +
      'every run with its attempts, and repairs what it can.',
    role: 'admin',
    needsAdminKey: true,
    success: { status: 202, description: 'The audit is requested; a worker will begin it.', schema: auditRequested },
    problems: [],
  },
} as const satisfies Readonly<Record<string, Operation>>
