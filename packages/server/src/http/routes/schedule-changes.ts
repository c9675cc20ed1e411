import type { Schedule as WireSchedule } from '@carillon/api'
import {
  CarillonError,
  type Caller,
  type Clock,
  type Schedule,
  type ScheduleEdit,
  type Scheduler,
} from '@carillon/core'

import type { HandlersOf } from '../handler.ts'
import { etagOf, matching, requireIfMatch } from '../revision.ts'
import { wallNow } from '../wall-clock.ts'
import { toEditPlan } from '../wire/edit-plan.ts'
import { toSchedule } from '../wire/schedule.ts'

/** How often an edit of whatever there is may be overtaken by another one before it gives up. */
const TRIES_MAX = 5

export const scheduleChangeHandlers: HandlersOf<
  'editSchedule' | 'deleteSchedule' | 'pauseSchedule' | 'resumeSchedule' | 'skipSlot' | 'restoreSlot'
> = {
  editSchedule: async ({ service: { scheduler, clock }, caller, params: { id }, query, headers, body }) => {
    const match = await matching(requireIfMatch(headers['if-match']), () => scheduler.get(caller, id))
    // Whatever it is: the core checks it.
    const edit = body as ScheduleEdit
    if (query.dryRun === 'true') {
      const plan = await scheduler.planEdit(caller, id, edit, match)
      // Of what the plan is about: with it as If-Match the edit does what was planned, or nothing.
      return { body: toEditPlan(plan, wallNow(clock)), headers: { etag: etagOf({ revision: plan.basedOn }) } }
    }
    const { revision } = match
    return answer(
      clock,
      revision === undefined
        ? await editLatest(scheduler, caller, id, edit)
        : await scheduler.edit(caller, id, edit, { revision }),
    )
  },

  deleteSchedule: async ({ service: { scheduler }, caller, params: { id }, headers }) => {
    await scheduler.delete(caller, id, await matching(headers['if-match'], () => scheduler.get(caller, id)))
    return { body: undefined }
  },

  pauseSchedule: async ({ service: { scheduler, clock }, caller, params: { id }, headers, body: { reason } }) => {
    const match = await matching(headers['if-match'], () => scheduler.get(caller, id))
    return answer(clock, await scheduler.pause(caller, id, { reason, ...match }))
  },

  resumeSchedule: async ({ service: { scheduler, clock }, caller, params: { id }, headers }) => {
    const match = await matching(headers['if-match'], () => scheduler.get(caller, id))
    return answer(clock, await scheduler.resume(caller, id, match))
  },

  skipSlot: async ({ service: { scheduler, clock }, caller, params: { id }, body: { scheduledFor } }) =>
    answer(clock, await scheduler.skip(caller, id, Date.parse(scheduledFor))),

  restoreSlot: async ({ service: { scheduler, clock }, caller, params: { id }, body: { scheduledFor } }) =>
    answer(clock, await scheduler.restore(caller, id, Date.parse(scheduledFor))),
}

function answer(clock: Clock, schedule: Schedule): { body: WireSchedule; headers: { etag: string } } {
  return { body: toSchedule(schedule, wallNow(clock)), headers: { etag: etagOf(schedule) } }
}

/** The core wants to know which revision is meant; here it is whichever there is when the edit comes to its turn. */
async function editLatest(scheduler: Scheduler, caller: Caller, id: string, edit: ScheduleEdit): Promise<Schedule> {
  for (let tries = 1; ; tries += 1) {
    const { revision } = await scheduler.get(caller, id)
    try {
      return await scheduler.edit(caller, id, edit, { revision })
    } catch (error) {
      const isOvertaken = error instanceof CarillonError && error.code === 'revision_conflict'
      if (!isOvertaken || tries >= TRIES_MAX) throw error
    }
  }
}
