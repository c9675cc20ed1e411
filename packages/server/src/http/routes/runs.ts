import { API_PREFIX } from '@carillon/api'
import { z } from 'zod'

import type { CursorKind } from '../cursor.ts'
import type { HandlersOf } from '../handler.ts'
import { readPage } from '../page.ts'
import { toRun, toRunWithAttempts } from '../wire/run.ts'

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

/** The runs of a schedule are listed by their slots, which say nothing about another schedule. */
function runsOf(scheduleId: string): CursorKind<number> {
  return { list: `runs of ${scheduleId}`, position: z.int().min(0).max(Date.parse('9999-12-31T23:59:59.999Z')) }
}
