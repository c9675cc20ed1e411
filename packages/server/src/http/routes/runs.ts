import { API_PREFIX, LAST_INSTANT_MS } from '@carillon/api'
import { z } from 'zod'

import type { HandlersOf } from '../operation-handlers.ts'
import { readPage, type CursorKind } from '../paging.ts'
import { withRenamedFields } from '../problems.ts'
import { streamPosition, UNBUFFERED } from '../streams.ts'
import { toRun, toRunWithAttempts, toTranscriptLine } from '../wire.ts'

export const runHandlers: HandlersOf<
  'listRuns' | 'getRun' | 'getTranscript' | 'followTranscript' | 'cancelRun' | 'runSchedule'
> = {
  listRuns: async ({ service: { scheduler, reasons }, caller, params: { id }, query }) => {
    const { items, nextCursor } = await readPage(query, {
      kind: runsOf(id),
      fetch: (page) => scheduler.listRuns(caller, id, page),
      positionOf: ({ scheduledFor }) => scheduledFor,
    })
    return { body: { items: items.map((run) => toRun(run, reasons)), nextCursor } }
  },

  getRun: async ({ service: { scheduler, reasons }, caller, params: { id } }) => ({
    body: toRunWithAttempts(await scheduler.getRun(caller, id), reasons),
  }),

  getTranscript: async ({ service: { scheduler }, caller, params: { id }, query: { after, limit } }) => {
    const { lines, isMore } = await withRenamedFields({ after: 'query.after' }, () =>
      scheduler.transcript(caller, id, {
        ...(after !== undefined && { after }),
        ...(limit !== undefined && { limit }),
      }),
    )
    return { body: { items: lines.map(toTranscriptLine), nextCursor: isMore ? (lines.at(-1)?.id ?? null) : null } }
  },

  followTranscript: async ({ service: { transcriptHub }, identity, params, headers, query, isStillAllowed }) => {
    const { lastEventId, field } = streamPosition(headers, query)
    const body = await withRenamedFields({ after: field }, () =>
      transcriptHub.follow({ identity, runId: params.id, lastEventId, isStillAllowed }),
    )
    return { body, headers: UNBUFFERED }
  },

  cancelRun: async ({ service: { scheduler, reasons }, caller, params: { id } }) => ({
    body: toRun(await scheduler.cancel(caller, id), reasons),
  }),

  runSchedule: async ({ service: { scheduler, reasons }, caller, params: { id } }) => {
    const run = await scheduler.runNow(caller, id)
    return { body: toRun(run, reasons), headers: { location: `${API_PREFIX}/runs/${run.id}` } }
  },
}

/** Runs are listed by their slots. The name of the list holds the schedule, so a cursor is valid for one schedule only. */
function runsOf(scheduleId: string): CursorKind<number> {
  return { list: `runs of ${scheduleId}`, position: z.int().min(0).max(LAST_INSTANT_MS) }
}
