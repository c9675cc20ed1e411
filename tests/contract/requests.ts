import { createOperationClient } from '@carillon/api'
import { ANSWER_TOKEN, ticketOperations } from '@carillon/server/testing/ticket-module'

import type { ServedId } from './document.ts'
import { SCHEDULE, type WireRequest } from './wire-request.ts'
import type { World } from './world.ts'

export const NO_SUCH_ID = '01890000-0000-7000-8000-000000000000'

/** For every operation a request that succeeds. It creates first what the request names. */
export const GRANTED: { readonly [Id in ServedId]: (world: World) => Promise<WireRequest> | WireRequest } = {
  createSchedule: () => ({ body: SCHEDULE }),
  previewSchedule: () => ({ body: SCHEDULE }),
  createSchedules: () => ({ body: { schedules: [SCHEDULE, { ...SCHEDULE, name: 'Another' }] } }),
  previewSchedules: () => ({ body: { schedules: [SCHEDULE, { ...SCHEDULE, name: 'Another' }] } }),
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
  getHistory: async (world) => ({ id: await world.pausedSchedule(), query: { limit: '1' } }),
  listTargetKinds: () => ({}),
  getRun: async (world) => ({ id: (await world.run()).id }),
  getTranscript: async (world) => ({ id: (await world.run()).id, query: { after: '1-1', limit: '10' } }),
  followTranscript: async (world) => ({ id: (await world.run()).id, query: { after: '1-1' } }),
  cancelRun: async (world) => ({ id: (await world.run()).id }),
  previewCadence: () => ({ body: { cadence: SCHEDULE.cadence, from: '2027-03-27T00:00:00Z', count: 3 } }),
  followEvents: () => ({}),
  createGrant: () => ({ body: { scopes: ['http:dispatch:127.0.0.1'], expiresAt: '2099-01-01T00:00:00Z' } }),
  listGrants: () => ({ query: { limit: '1' } }),
  getGrant: async (world) => ({ id: await world.grant() }),
  renewGrant: async (world) => ({ id: await world.grant(), body: { expiresAt: '2099-01-01T00:00:00Z' } }),
  revokeGrant: async (world) => ({ id: await world.grant() }),
  listSecrets: () => ({ query: { limit: '1' } }),
  putSecret: () => ({ id: 'webhook-key', body: { value: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' } }),
  deleteSecret: async (world) => ({ id: await world.secret() }),
  listMembers: () => ({ query: { limit: '1' } }),
  putMember: () => ({ id: 'user:alice', body: { role: 'member' } }),
  removeMember: async (world) => ({ id: await world.member() }),
  createKey: () => ({ body: { project: 'default', subject: 'user:alice', role: 'member' } }),
  listKeys: () => ({ query: { limit: '1' } }),
  revokeKey: async (world) => ({ id: await world.key() }),
  getTenant: () => ({ id: 'acme' }),
  putTenant: () => ({ id: 'acme', body: { maxSchedulesPerUser: 10, allowedHosts: ['*.example.com'] } }),
  deleteProjectSchedules: () => ({ id: 'default' }),
  previewPurge: () => ({ id: 'default' }),
  purgeProject: async (world) => {
    await world.client.projects.deleteSchedules('default')
    return { id: 'default', body: { name: 'default' } }
  },
  completeRun: async (world) => world.completion(),
  heartbeatRun: async (world) => world.heartbeat(),
  createTicket: () => ({ params: { queue: 'north' }, body: { title: 'A question' } }),
  getTicket: async (world) => ({ params: { queue: 'north', ticket: await ticketOf(world) } }),
  deleteTicket: async (world) => ({ params: { queue: 'north', ticket: await ticketOf(world) } }),
  listProjectTickets: () => ({ params: { project: 'default' }, query: { answered: 'true' } }),
  answerTicket: async (world) => ({
    params: { ticket: await ticketOf(world) },
    body: { answer: 'Yes' },
    key: ANSWER_TOKEN,
  }),
  getAudit: () => ({}),
  requestAudit: () => ({}),
}

/** Creates a ticket of the module, and returns its id. */
export async function ticketOf({ url, adminKey }: Pick<World, 'url' | 'adminKey'>, key = adminKey): Promise<string> {
  const client = createOperationClient(ticketOperations, url, key)
  return (await client.createTicket({ params: { queue: 'north' }, body: { title: 'A question' } })).id
}

/** Requests for the refusals of single operations, by `<operation> <code>`. */
export const REFUSED: Readonly<Record<string, (world: World) => Promise<WireRequest>>> = {
  'pauseSchedule state_conflict': async (world) => ({ id: await world.pausedSchedule(), body: { reason: 'again' } }),
  'resumeSchedule state_conflict': async (world) => ({ id: await world.schedule() }),
  'cancelRun state_conflict': async (world) => {
    const { id } = await world.run()
    await world.client.runs.cancel(id)
    return { id }
  },
  'completeRun state_conflict': async (world) => {
    const request = await world.completion()
    await world.endRuns()
    return request
  },
  'heartbeatRun state_conflict': async (world) => {
    const request = await world.heartbeat()
    await world.endRuns()
    return request
  },
  'runSchedule overlap': async (world) => ({ id: (await world.run()).scheduleId }),
  'runSchedule state_conflict': async (world) => {
    const { id } = await world.client.schedules.create({ ...SCHEDULE, policy: { runLimit: 1, overlap: 'allow' } })
    await world.client.schedules.run(id)
    return { id }
  },
  'runSchedule grant_invalid': async (world) => {
    const grantId = await world.grant()
    const { id } = await world.client.schedules.create({ ...SCHEDULE, grantId })
    await world.client.grants.revoke(grantId)
    return { id }
  },
  'renewGrant state_conflict': async (world) => {
    const id = await world.grant()
    await world.client.grants.revoke(id)
    return { id, body: { expiresAt: null } }
  },
  'createSchedule quota_exceeded': async (world) => ({ key: await world.keyOfFullProject(), body: SCHEDULE }),
  'createSchedules quota_exceeded': async (world) => ({
    key: await world.keyOfFullProject(),
    body: { schedules: [SCHEDULE] },
  }),
  'createSchedules idempotency_key_reused': async (world) => {
    const idempotencyKey = world.unique('reused')
    await world.client.schedules.create(SCHEDULE, { idempotencyKey })
    return { headers: { 'idempotency-key': idempotencyKey }, body: { schedules: [SCHEDULE] } }
  },
  'createSchedules idempotency_in_flight': async (world) => {
    const idempotencyKey = world.unique('in-flight')
    const release = await world.holdCreate(SCHEDULE, idempotencyKey)
    return { headers: { 'idempotency-key': idempotencyKey }, body: { schedules: [SCHEDULE] }, release }
  },
  'createKey admin_key_required': async (world) => ({
    key: await world.projectKey(),
    body: { project: 'another', subject: 'user:alice', role: 'member' },
  }),
  'listKeys admin_key_required': async (world) => ({ key: await world.projectKey(), query: { project: 'another' } }),
  'revokeKey admin_key_required': async (world) => ({
    key: await world.projectKey(),
    id: await world.key(),
    query: { project: 'another' },
  }),
  'getTenant tenant_not_found': async (world) => ({ key: await world.memberKey(), id: 'another' }),
  'purgeProject purge_refused': async () => ({ id: 'default', body: { name: 'another' } }),
  'purgeProject state_conflict': async (world) => {
    await world.schedule()
    return { id: 'default', body: { name: 'default' } }
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
