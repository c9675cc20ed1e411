import { API_PREFIX } from '@carillon/api'
import type { ScheduleInput } from '@carillon/core'

import { naming } from '../field-names.ts'
import type { HandlersOf } from '../handler.ts'
import { byId, readPage } from '../page.ts'
import { etagOf } from '../revision.ts'
import { wallNow } from '../wall-clock.ts'
import { toInstant, toInstantOrNull } from '../wire/instant.ts'
import { toSchedulePreview } from '../wire/preview.ts'
import { toSchedule } from '../wire/schedule.ts'
import { toSlot } from '../wire/slot.ts'

const LIST = byId('schedules')
const QUERY_NAMES = { nameContains: 'query.q', targetKind: 'query.targetKind', state: 'query.state' }
const SLOT_NAMES = { from: 'query.from', to: 'query.to', limit: 'query.limit' }

export const scheduleHandlers: HandlersOf<
  'createSchedule' | 'previewSchedule' | 'listSchedules' | 'getSchedule' | 'listSlots' | 'getHistory'
> = {
  createSchedule: async ({ service: { scheduler, clock }, caller, headers, body }) => {
    const key = headers['idempotency-key']
    // Whatever it is: the core checks it.
    const input = body as ScheduleInput
    const { schedule, isReplayed } =
      key === undefined
        ? { schedule: await scheduler.create(caller, input), isReplayed: false }
        : await scheduler.createOnce(caller, input, key)
    return {
      body: toSchedule(schedule, wallNow(clock)),
      headers: {
        etag: etagOf(schedule),
        location: `${API_PREFIX}/schedules/${schedule.id}`,
        ...(isReplayed ? { 'idempotency-replayed': 'true' } : {}),
      },
    }
  },

  previewSchedule: async ({ service: { scheduler }, caller, body }) => {
    return { body: toSchedulePreview(await scheduler.planCreate(caller, body)) }
  },

  listSchedules: async ({ service: { scheduler, clock }, caller, query: { state, targetKind, q, ...page } }) => {
    const filter = {
      ...(state === undefined ? {} : { state }),
      ...(targetKind === undefined ? {} : { targetKind }),
      ...(q === undefined ? {} : { nameContains: q }),
    }
    const { items, nextCursor } = await readPage(page, {
      kind: LIST,
      fetch: (part) => naming(QUERY_NAMES, () => scheduler.list(caller, { ...filter, ...part })),
      positionOf: ({ id }) => id,
    })
    const now = wallNow(clock)
    return { body: { items: items.map((schedule) => toSchedule(schedule, now)), nextCursor } }
  },

  getSchedule: async ({ service: { scheduler, clock }, caller, params: { id } }) => {
    const schedule = await scheduler.get(caller, id)
    return { body: toSchedule(schedule, wallNow(clock)), headers: { etag: etagOf(schedule) } }
  },

  listSlots: async ({ service: { scheduler }, caller, params: { id }, query: { from, to, limit } }) => {
    const range = {
      ...(from === undefined ? {} : { from: Date.parse(from) }),
      ...(to === undefined ? {} : { to: Date.parse(to) }),
      ...(limit === undefined ? {} : { limit }),
    }
    const slots = await naming(SLOT_NAMES, () => scheduler.slots(caller, id, range))
    return { body: { items: slots.map(toSlot) } }
  },

  getHistory: async ({ service: { scheduler }, caller, params: { id } }) => {
    const changes = await scheduler.history(caller, id)
    return {
      body: {
        items: changes.map(({ nextSlotAt, changedAt, ...change }) => ({
          ...change,
          nextSlotAt: toInstantOrNull(nextSlotAt),
          changedAt: toInstant(changedAt),
        })),
      },
    }
  },
}
