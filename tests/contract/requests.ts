import type { OperationId } from '@carillon/api'

import { SCHEDULE, type WireRequest } from './wire-request.ts'
import type { World } from './world.ts'

export const NO_SUCH_ID = '01890000-0000-7000-8000-000000000000'

/** For every operation a request that is granted, once what it is about has been made. */
export const GRANTED: { readonly [Id in OperationId]: (world: World) => Promise<WireRequest> | WireRequest } = {
  createSchedule: () => ({ body: SCHEDULE }),
  previewSchedule: () => ({ body: SCHEDULE }),
  listSchedules: () => ({ query: { state: 'active', targetKind: 'http', q: 'dig', limit: '10' } }),
  getCalendar: () => ({}),
  getSchedule: async (world) => ({ id: await world.schedule() }),
  editSchedule: async (world) => ({
    id: await world.schedule(),
    headers: { 'if-match': '"1"' },
    body: { name: 'Evening digest', policy: { retry: { maxAttempts: 3 } } },
  }),
  deleteSchedule: async (world) => ({ id: await world.schedule(), headers: { 'if-match': '"1"' } }),
  pauseSchedule: async (world) => ({
    id: await world.schedule(),
    headers: { 'if-match': '"1"' },
    body: { reason: 'The provider is down' },
  }),
  resumeSchedule: async (world) => ({ id: await world.pausedSchedule(), headers: { 'if-match': '"1"' } }),
  runSchedule: async (world) => ({ id: await world.schedule() }),
  skipSlot: async (world) => {
    const id = await world.schedule()
    return { id, body: { scheduledFor: await world.nextSlot(id) } }
  },
  restoreSlot: async (world) => {
    const id = await world.schedule()
    const scheduledFor = await world.nextSlot(id)
    await world.client.schedules.skip(id, scheduledFor)
    return { id, body: { scheduledFor } }
  },
  listRuns: async (world) => ({ id: (await world.run()).scheduleId, query: { limit: '10' } }),
  listSlots: async (world) => ({
    id: await world.schedule(),
    query: { from: '2027-01-01T00:00:00Z', to: '2027-02-01T00:00:00+01:00', limit: '5' },
  }),
  getHistory: async (world) => ({ id: await world.pausedSchedule() }),
  getRun: async (world) => ({ id: (await world.run()).id }),
  cancelRun: async (world) => ({ id: (await world.run()).id }),
  previewCadence: () => ({ body: { cadence: SCHEDULE.cadence, from: '2027-03-27T00:00:00Z', count: 3 } }),
  followEvents: () => ({}),
  createGrant: () => ({ body: { scopes: ['http:dispatch:127.0.0.1'], expiresAt: '2099-01-01T00:00:00Z' } }),
  listGrants: () => ({ query: { limit: '1' } }),
  revokeGrant: async (world) => ({ id: await world.grant() }),
  createKey: () => ({ body: { project: 'default', subject: 'user:alice', role: 'member' } }),
  listKeys: () => ({ query: { limit: '1' } }),
  revokeKey: async (world) => ({ id: await world.key() }),
  deleteProjectSchedules: () => ({ id: 'default' }),
  getAudit: () => ({}),
  requestAudit: () => ({}),
}

/** How to meet a refusal that only some operations know, by `<operation> <code>`. */
export const REFUSED: Readonly<Record<string, (world: World) => Promise<WireRequest>>> = {
  'pauseSchedule state_conflict': async (world) => ({ id: await world.pausedSchedule(), body: { reason: 'again' } }),
  'resumeSchedule state_conflict': async (world) => ({ id: await world.schedule() }),
  'cancelRun state_conflict': async (world) => {
    const { id } = await world.run()
    await world.client.runs.cancel(id)
    return { id }
  },
  'runSchedule overlap': async (world) => ({ id: (await world.run()).scheduleId }),
  'runSchedule grant_invalid': async (world) => {
    const grantId = await world.grant()
    const { id } = await world.client.schedules.create({ ...SCHEDULE, grantId })
    await world.client.grants.revoke(grantId)
    return { id }
  },
  'createSchedule idempotency_key_reused': async (world) => {
    const idempotencyKey = world.unique('reused')
    await world.client.schedules.create(SCHEDULE, { idempotencyKey })
    return { headers: { 'idempotency-key': idempotencyKey }, body: { ...SCHEDULE, name: 'Another' } }
  },
  'createSchedule idempotency_in_flight': async (world) => {
    const idempotencyKey = world.unique('in-flight')
    const release = await world.holdCreate(SCHEDULE, idempotencyKey)
    return { headers: { 'idempotency-key': idempotencyKey }, body: SCHEDULE, release }
  },
  'skipSlot slot_not_found': async (world) => ({
    id: await world.schedule(),
    body: { scheduledFor: '2027-01-01T00:00:01Z' },
  }),
  'restoreSlot slot_not_found': async (world) => {
    const id = await world.schedule()
    return { id, body: { scheduledFor: await world.nextSlot(id) } }
  },
  'editSchedule revision_required': async (world) => ({ id: await world.schedule(), body: { name: 'Other' } }),
}
