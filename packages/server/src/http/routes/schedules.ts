import { API_PREFIX, type Schedule as WireSchedule } from '@carillon/api'
import {
  CarillonError,
  type Caller,
  type Clock,
  type Schedule,
  type ScheduleEdit,
  type ScheduleInput,
  type Scheduler,
} from '@carillon/core'
import { z } from 'zod'

import { wallNow } from '../../clock.ts'
import type { HandlersOf } from '../operation-handlers.ts'
import { cursorById, readPage, type CursorKind } from '../paging.ts'
import { withRenamedFields } from '../problems.ts'
import { matching, requireIfMatch } from '../revisions.ts'
import { toEditPlan, toEtag, toPreview, toSchedule, toScheduleChange, toSchedulePreview, toSlot } from '../wire.ts'

const LIST = cursorById('schedules')
const QUERY_NAMES = { nameContains: 'query.q', targetKind: 'query.targetKind', state: 'query.state' }
const SLOT_NAMES = { from: 'query.from', to: 'query.to', limit: 'query.limit' }
/** How many times an edit with `If-Match: *` is tried. If a concurrent edit comes first each time, the edit is refused. */
const TRIES_MAX = 5

// The schemas of the API accept any value in place of a schedule, because core checks it. So these handlers cast such bodies.
export const scheduleHandlers: HandlersOf<
  | 'createSchedule'
  | 'createSchedules'
  | 'previewSchedule'
  | 'previewSchedules'
  | 'previewCadence'
  | 'listSchedules'
  | 'getSchedule'
  | 'listSlots'
  | 'getHistory'
  | 'editSchedule'
  | 'deleteSchedule'
  | 'pauseSchedule'
  | 'resumeSchedule'
  | 'skipSlot'
  | 'restoreSlot'
> = {
  createSchedule: async ({ service: { scheduler, clock }, caller, headers, body }) => {
    const key = headers['idempotency-key']
    const input = body as ScheduleInput
    const { schedule, isReplayed } =
      key === undefined
        ? { schedule: await scheduler.create(caller, input), isReplayed: false }
        : await scheduler.createOnce(caller, input, key)
    const answer = scheduleAnswer(clock, schedule)
    const location = `${API_PREFIX}/schedules/${schedule.id}`
    return { ...answer, headers: { ...answer.headers, location, ...replayHeader(isReplayed) } }
  },

  createSchedules: async ({ service: { scheduler }, caller, headers, body }) => {
    const key = headers['idempotency-key']
    const inputs = body.schedules as readonly ScheduleInput[]
    const { ids, isReplayed } =
      key === undefined
        ? { ids: await scheduler.createMany(caller, inputs), isReplayed: false }
        : await scheduler.createManyOnce(caller, inputs, key)
    return { body: { ids: [...ids] }, headers: replayHeader(isReplayed) }
  },

  previewSchedule: async ({ service: { scheduler }, caller, body }) => ({
    body: toSchedulePreview(await scheduler.planCreate(caller, body)),
  }),

  previewSchedules: async ({ service: { scheduler }, caller, body }) => {
    const plans = await scheduler.planCreateMany(caller, body.schedules)
    return { body: { items: plans.map(toSchedulePreview) } }
  },

  previewCadence: async ({ service: { scheduler }, body: { cadence, from, count } }) => {
    const preview = await scheduler.preview({
      cadence,
      ...(from === undefined ? {} : { from: Date.parse(from) }),
      ...(count === undefined ? {} : { count }),
    })
    return { body: toPreview(preview) }
  },

  listSchedules: async ({ service: { scheduler, clock }, caller, query: { state, targetKind, q, ...page } }) => {
    const filter = {
      ...(state === undefined ? {} : { state }),
      ...(targetKind === undefined ? {} : { targetKind }),
      ...(q === undefined ? {} : { nameContains: q }),
    }
    const { items, nextCursor } = await readPage(page, {
      kind: LIST,
      fetch: (part) => withRenamedFields(QUERY_NAMES, () => scheduler.list(caller, { ...filter, ...part })),
      positionOf: ({ id }) => id,
    })
    const now = wallNow(clock)
    return { body: { items: items.map((schedule) => toSchedule(schedule, now)), nextCursor } }
  },

  getSchedule: async ({ service: { scheduler, clock }, caller, params: { id } }) =>
    scheduleAnswer(clock, await scheduler.get(caller, id)),

  listSlots: async ({ service: { scheduler }, caller, params: { id }, query: { from, to, limit } }) => {
    const range = {
      ...(from === undefined ? {} : { from: Date.parse(from) }),
      ...(to === undefined ? {} : { to: Date.parse(to) }),
      ...(limit === undefined ? {} : { limit }),
    }
    const slots = await withRenamedFields(SLOT_NAMES, () => scheduler.slots(caller, id, range))
    return { body: { items: slots.map(toSlot) } }
  },

  getHistory: async ({ service: { scheduler }, caller, params: { id }, query }) => {
    const { items, nextCursor } = await readPage(query, {
      kind: historyOf(id),
      fetch: (page) => scheduler.history(caller, id, page),
      positionOf: (change) => change.id,
    })
    return { body: { items: items.map(toScheduleChange), nextCursor } }
  },

  editSchedule: async ({ service: { scheduler, clock }, caller, params: { id }, query, headers, body }) => {
    const match = await matching(requireIfMatch(headers['if-match']), () => scheduler.get(caller, id))
    const edit = body as ScheduleEdit
    if (query.dryRun === 'true') {
      const plan = await scheduler.planEdit(caller, id, edit, match)
      // If the client sends this ETag as If-Match, the edit does exactly what was planned, or is refused.
      return { body: toEditPlan(plan, wallNow(clock)), headers: { etag: toEtag({ revision: plan.basedOn }) } }
    }
    const { revision } = match
    const schedule =
      revision === undefined
        ? await editLatest(scheduler, caller, id, edit)
        : await scheduler.edit(caller, id, edit, { revision })
    return scheduleAnswer(clock, schedule)
  },

  deleteSchedule: async ({ service: { scheduler }, caller, params: { id }, headers }) => {
    await scheduler.delete(caller, id, await matching(headers['if-match'], () => scheduler.get(caller, id)))
    return { body: undefined }
  },

  pauseSchedule: async ({ service: { scheduler, clock }, caller, params: { id }, headers, body: { reason } }) => {
    const match = await matching(headers['if-match'], () => scheduler.get(caller, id))
    return scheduleAnswer(clock, await scheduler.pause(caller, id, { reason, ...match }))
  },

  resumeSchedule: async ({ service: { scheduler, clock }, caller, params: { id }, headers }) => {
    const match = await matching(headers['if-match'], () => scheduler.get(caller, id))
    return scheduleAnswer(clock, await scheduler.resume(caller, id, match))
  },

  skipSlot: async ({ service: { scheduler, clock }, caller, params: { id }, body: { scheduledFor } }) =>
    scheduleAnswer(clock, await scheduler.skip(caller, id, Date.parse(scheduledFor))),

  restoreSlot: async ({ service: { scheduler, clock }, caller, params: { id }, body: { scheduledFor } }) =>
    scheduleAnswer(clock, await scheduler.restore(caller, id, Date.parse(scheduledFor))),
}

/** The name of the list holds the schedule, so a cursor is valid for one schedule only. */
function historyOf(scheduleId: string): CursorKind<number> {
  return { list: `history of ${scheduleId}`, position: z.int().min(1) }
}

function scheduleAnswer(clock: Clock, schedule: Schedule): { body: WireSchedule; headers: { etag: string } } {
  return { body: toSchedule(schedule, wallNow(clock)), headers: { etag: toEtag(schedule) } }
}

function replayHeader(isReplayed: boolean): Record<string, string> {
  return isReplayed ? { 'idempotency-replayed': 'true' } : {}
}

/** `If-Match: *` edits the current revision. Core requires a revision, so a conflict with another edit is retried. */
async function editLatest(scheduler: Scheduler, caller: Caller, id: string, edit: ScheduleEdit): Promise<Schedule> {
  for (let tries = 1; ; tries += 1) {
    const { revision } = await scheduler.get(caller, id)
    try {
      return await scheduler.edit(caller, id, edit, { revision })
    } catch (error) {
      const isConflict = error instanceof CarillonError && error.code === 'revision_conflict'
      if (!isConflict || tries >= TRIES_MAX) throw error
    }
  }
}
