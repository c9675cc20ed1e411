import type { ServedId } from '../contract/document.ts'
import { SCHEDULE, type WireRequest } from '../contract/wire-request.ts'
import type { Mine, Theirs } from './theirs.ts'

export type Attack = (theirs: Theirs, mine: Mine) => WireRequest

const signed = (secretRef: string, kind: 'bearer' | 'hmac') => ({
  kind: 'http',
  url: 'http://127.0.0.1:9000/digest',
  auth: { kind, secretRef },
})
const NO_TOKEN = { authorization: `Bearer ${Buffer.from('["acme","web"]').toString('base64url')}.${'A'.repeat(43)}` }
const ANY_REVISION = { 'if-match': '*' }

/**
 * Requests of one tenant that name something of another tenant, in every place where an operation accepts a name. An operation without such
 * a place gets a plain request. Every operation is listed, and has at least one attack whose only fault is the foreign name.
 */
export const ATTACKS: { readonly [Id in ServedId]: readonly Attack[] } = {
  createSchedule: [
    ({ idempotencyKey }) => ({ headers: { 'idempotency-key': idempotencyKey }, body: SCHEDULE }),
    ({ subject }) => ({ body: { ...SCHEDULE, ownerSubject: subject } }),
    ({ grantId }) => ({ body: { ...SCHEDULE, grantId } }),
    ({ ownGrantId }) => ({ body: { ...SCHEDULE, grantId: ownGrantId } }),
    ({ secretName }) => ({ body: { ...SCHEDULE, target: signed(secretName, 'bearer') } }),
    ({ tenant, theirProject }) => ({ body: { ...SCHEDULE, tenantId: tenant, projectId: theirProject } }),
    ({ tenant }) => ({ body: { ...SCHEDULE, tenant_id: tenant } }),
  ],
  previewSchedule: [
    ({ namePart }) => ({ body: { ...SCHEDULE, name: namePart } }),
    ({ subject }) => ({ body: { ...SCHEDULE, ownerSubject: subject } }),
    ({ grantId }) => ({ body: { ...SCHEDULE, grantId } }),
    ({ ownGrantId }) => ({ body: { ...SCHEDULE, grantId: ownGrantId } }),
    ({ secretName }) => ({ body: { ...SCHEDULE, target: signed(secretName, 'hmac') } }),
  ],
  createSchedules: [
    ({ batchKey }) => ({ headers: { 'idempotency-key': batchKey }, body: { schedules: [SCHEDULE] } }),
    ({ subject }) => ({ body: { schedules: [SCHEDULE, { ...SCHEDULE, ownerSubject: subject }] } }),
    ({ grantId }) => ({ body: { schedules: [SCHEDULE, { ...SCHEDULE, grantId }] } }),
    ({ ownGrantId }) => ({ body: { schedules: [SCHEDULE, { ...SCHEDULE, grantId: ownGrantId }] } }),
    ({ secretName }) => ({ body: { schedules: [{ ...SCHEDULE, target: signed(secretName, 'bearer') }] } }),
    ({ tenant, theirProject }) => ({
      body: { schedules: [{ ...SCHEDULE, tenantId: tenant, projectId: theirProject }] },
    }),
    ({ tenant }) => ({ body: { schedules: [SCHEDULE], tenant } }),
  ],
  previewSchedules: [
    ({ namePart }) => ({ body: { schedules: [{ ...SCHEDULE, name: namePart }] } }),
    ({ subject }) => ({ body: { schedules: [SCHEDULE, { ...SCHEDULE, ownerSubject: subject }] } }),
    ({ grantId }) => ({ body: { schedules: [SCHEDULE, { ...SCHEDULE, grantId }] } }),
    ({ secretName }) => ({ body: { schedules: [{ ...SCHEDULE, target: signed(secretName, 'hmac') }] } }),
  ],
  listSchedules: [
    () => ({}),
    ({ namePart }) => ({ query: { q: namePart } }),
    ({ schedulesCursor }) => ({ query: { cursor: schedulesCursor } }),
    ({ schedulesCursor, namePart }) => ({ query: { cursor: schedulesCursor, q: namePart, limit: '1' } }),
    ({ grantsCursor }) => ({ query: { cursor: grantsCursor } }),
    ({ tenant }) => ({ query: { tenant } }),
    ({ theirProject }) => ({ query: { project: theirProject } }),
    ({ scheduleId }) => ({ query: { cursor: scheduleId } }),
  ],
  getCalendar: [() => ({}), ({ tenant }) => ({ query: { tenant } })],
  getSchedule: [({ scheduleId }) => ({ id: scheduleId }), ({ runId }) => ({ id: runId })],
  editSchedule: [
    ({ scheduleId }) => ({ id: scheduleId, headers: { 'if-match': '"1"' }, body: { name: 'mine now' } }),
    ({ scheduleId }) => ({ id: scheduleId, headers: ANY_REVISION, query: { dryRun: 'true' }, body: {} }),
    ({ scheduleId }) => ({ id: scheduleId, body: { name: 'mine now' } }),
    ({ grantId }, { scheduleId: id }) => ({ id, headers: ANY_REVISION, body: { grantId } }),
    ({ ownGrantId }, { scheduleId: id }) => ({ id, headers: ANY_REVISION, body: { grantId: ownGrantId } }),
    ({ grantId }, { scheduleId: id }) => ({ id, headers: ANY_REVISION, query: { dryRun: 'true' }, body: { grantId } }),
    ({ secretName }, { scheduleId: id }) => ({
      id,
      headers: ANY_REVISION,
      body: { target: signed(secretName, 'bearer') },
    }),
    ({ scheduleId }, { scheduleId: id }) => ({ id, headers: { 'if-match': `"${scheduleId}"` }, body: { name: 'b' } }),
  ],
  deleteSchedule: [
    ({ scheduleId }) => ({ id: scheduleId }),
    ({ scheduleId }) => ({ id: scheduleId, headers: { 'if-match': '"1"' } }),
  ],
  pauseSchedule: [({ scheduleId }) => ({ id: scheduleId, body: { reason: 'mine now' } })],
  resumeSchedule: [({ scheduleId }) => ({ id: scheduleId })],
  runSchedule: [({ scheduleId }) => ({ id: scheduleId })],
  skipSlot: [({ scheduleId, slot }) => ({ id: scheduleId, body: { scheduledFor: slot } })],
  restoreSlot: [({ scheduleId, slot }) => ({ id: scheduleId, body: { scheduledFor: slot } })],
  listTargetKinds: [() => ({}), ({ tenant }) => ({ query: { tenant } })],
  listRuns: [
    ({ scheduleId }) => ({ id: scheduleId }),
    ({ scheduleId, runsCursor }) => ({ id: scheduleId, query: { cursor: runsCursor } }),
    ({ runsCursor }, { scheduleId: id }) => ({ id, query: { cursor: runsCursor } }),
    ({ runId }) => ({ id: runId }),
  ],
  listSlots: [({ scheduleId }) => ({ id: scheduleId }), ({ runId }) => ({ id: runId })],
  getHistory: [
    ({ scheduleId }) => ({ id: scheduleId }),
    ({ scheduleId, historyCursor }) => ({ id: scheduleId, query: { cursor: historyCursor } }),
    ({ historyCursor }, { scheduleId: id }) => ({ id, query: { cursor: historyCursor } }),
    ({ runId }) => ({ id: runId }),
  ],
  getRun: [({ runId }) => ({ id: runId }), ({ scheduleId }) => ({ id: scheduleId })],
  getTranscript: [
    ({ runId }) => ({ id: runId }),
    ({ runId }) => ({ id: runId, query: { after: '1-1', limit: '1' } }),
    ({ scheduleId }) => ({ id: scheduleId }),
  ],
  followTranscript: [
    ({ runId }) => ({ id: runId }),
    ({ runId }) => ({ id: runId, query: { after: '1-1' } }),
    ({ runId }) => ({ id: runId, headers: { 'last-event-id': '1-1' } }),
  ],
  cancelRun: [({ runId }) => ({ id: runId })],
  // A caller without the token of the run: its key proves nothing here.
  completeRun: [
    ({ runId }) => ({ id: runId, query: { attempt: '1' }, headers: NO_TOKEN, body: { outcome: 'succeeded' } }),
    ({ runId }) => ({ id: runId, query: { attempt: '1' }, body: { outcome: 'succeeded' } }),
  ],
  heartbeatRun: [({ runId }) => ({ id: runId, headers: NO_TOKEN }), ({ runId }) => ({ id: runId })],
  previewCadence: [
    ({ slot }) => ({ body: { cadence: SCHEDULE.cadence, from: slot } }),
    ({ tenant }) => ({ body: { cadence: SCHEDULE.cadence, tenant } }),
  ],
  // streams.test.ts tests the contents of its streams.
  followEvents: [() => ({}), ({ tenant }) => ({ query: { tenant } })],
  createTicket: [
    ({ subject }) => ({ params: { queue: 'north' }, body: { title: subject } }),
    ({ theirProject }) => ({ params: { queue: 'north' }, body: { title: theirProject } }),
  ],
  getTicket: [({ ticketId }) => ({ params: { queue: 'north', ticket: ticketId } })],
  deleteTicket: [({ ticketId }) => ({ params: { queue: 'north', ticket: ticketId } })],
  listProjectTickets: [
    ({ theirProject }) => ({ params: { project: theirProject } }),
    ({ tenant }, { project }) => ({ params: { project }, query: { tenant } }),
  ],
  // A caller without the token of the module: its key proves nothing here.
  answerTicket: [({ ticketId }) => ({ params: { ticket: ticketId }, body: { answer: 'mine now' } })],
  createGrant: [
    ({ subject }) => ({ body: { scopes: ['http:dispatch:*'], subject } }),
    ({ theirProject }) => ({ body: { scopes: ['http:dispatch:*'], billingAccountId: theirProject } }),
    ({ tenant }) => ({ body: { scopes: ['http:dispatch:*'], tenantId: tenant } }),
  ],
  listGrants: [
    () => ({}),
    ({ grantsCursor }) => ({ query: { cursor: grantsCursor } }),
    ({ grantId }) => ({ query: { cursor: grantId } }),
    ({ tenant }) => ({ query: { tenant } }),
  ],
  getGrant: [({ grantId }) => ({ id: grantId }), ({ ownGrantId }) => ({ id: ownGrantId })],
  renewGrant: [
    ({ grantId }) => ({ id: grantId, body: { expiresAt: null } }),
    ({ ownGrantId }) => ({ id: ownGrantId, body: { expiresAt: null } }),
  ],
  revokeGrant: [({ grantId }) => ({ id: grantId }), ({ ownGrantId }) => ({ id: ownGrantId })],
  createKey: [
    ({ subject }, { project }) => ({ body: { project, subject, role: 'member' } }),
    ({ tenant }, { project }) => ({ body: { tenant, project, subject: 'user:mallory', role: 'admin' } }),
    ({ tenant, theirProject: project }) => ({ body: { tenant, project, subject: 'user:mallory', role: 'admin' } }),
    ({ theirProject: project }) => ({ body: { project, subject: 'user:mallory', role: 'admin' } }),
  ],
  listKeys: [
    () => ({}),
    ({ keysCursor }) => ({ query: { cursor: keysCursor } }),
    ({ tenant }) => ({ query: { tenant } }),
    ({ tenant }, { project }) => ({ query: { tenant, project } }),
    ({ tenant, theirProject: project }) => ({ query: { tenant, project } }),
    ({ theirProject: project }) => ({ query: { project } }),
    ({ keyId }) => ({ query: { cursor: keyId } }),
  ],
  revokeKey: [
    ({ keyId }) => ({ id: keyId }),
    ({ keyId, tenant }) => ({ id: keyId, query: { tenant } }),
    ({ keyId, tenant }, { project }) => ({ id: keyId, query: { tenant, project } }),
    ({ keyId, tenant, theirProject: project }) => ({ id: keyId, query: { tenant, project } }),
  ],
  listMembers: [
    () => ({}),
    ({ membersCursor }) => ({ query: { cursor: membersCursor } }),
    ({ tenant }) => ({ query: { tenant } }),
    ({ subject }) => ({ query: { cursor: subject } }),
  ],
  putMember: [
    ({ subject }) => ({ id: subject, body: { role: 'admin' } }),
    ({ tenant, subject }) => ({ id: subject, body: { role: 'admin', tenant } }),
  ],
  removeMember: [({ subject }) => ({ id: subject })],
  listSecrets: [
    () => ({}),
    ({ secretsCursor }) => ({ query: { cursor: secretsCursor } }),
    ({ tenant }) => ({ query: { tenant } }),
    ({ secretName }) => ({ query: { cursor: secretName } }),
  ],
  putSecret: [
    ({ secretName }) => ({ id: secretName, body: { value: 'mine now' } }),
    ({ secretName, tenant }) => ({ id: secretName, body: { value: 'mine now', tenant } }),
  ],
  deleteSecret: [({ secretName }) => ({ id: secretName })],
  getTenant: [({ tenant }) => ({ id: tenant })],
  putTenant: [({ tenant }) => ({ id: tenant, body: { maxSchedulesPerProject: 1 } })],
  deleteProjectSchedules: [({ theirProject }) => ({ id: theirProject })],
  previewPurge: [({ theirProject }) => ({ id: theirProject })],
  purgeProject: [
    ({ theirProject }) => ({ id: theirProject, body: { name: theirProject } }),
    ({ theirProject }, { project }) => ({ id: theirProject, body: { name: project } }),
    ({ theirProject }, { project }) => ({ id: project, body: { name: theirProject } }),
  ],
  getAudit: [() => ({}), ({ tenant }) => ({ query: { tenant } })],
  requestAudit: [() => ({}), ({ tenant }) => ({ query: { tenant } })],
}
