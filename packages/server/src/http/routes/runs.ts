import { API_PREFIX, LAST_INSTANT_MS } from '@carillon/api'
import { z } from 'zod'

import type { HandlersOf } from '../operations.ts'
import { readPage, type CursorKind } from '../paging.ts'
import { toRun, toRunWithAttempts } from '../wire.ts'

export const runHandlers: HandlersOf<'listRuns' | 'getRun' | 'cancelRun' | 'runSchedule'> = {
  listRuns: async ({ service: { scheduler }, caller, params: { id }, query }) => {
    const { items, nextCursor } = await readPage(query, {
      kind: runsOf(id),
      fetch: (page) => scheduler.listRuns(caller, id, page),
      positionOf: ({ scheduledFor }) => scheduledFor,
    })
    return { body: { items: items.map(toRun), nextCursor } }
  },

  getRun: async ({ service: { scheduler }, caller, params: { id } }) => ({
    body: toRunWithAttempts(await scheduler.getRun(caller, id)),
  }),

  cancelRun: async ({ service: { scheduler }, caller, params: { id } }) => ({
    body: toRun(await scheduler.cancel(caller, id)),
  }),

  runSchedule: async ({ service: { scheduler }, caller, params: { id } }) => {
    const run = await scheduler.runNow(caller, id)
    return { body: toRun(run), headers: { location: `${API_PREFIX}/runs/${run.id}` } }
  },
}

/** Runs are listed by their slots. The name of the list holds the schedule, so a cursor is valid for one schedule only. */
function runsOf(scheduleId: string): CursorKind<number> {
  return { list: `runs of ${scheduleId}`, position: z.int().min(0).max(LAST_INSTANT_MS) }
}
