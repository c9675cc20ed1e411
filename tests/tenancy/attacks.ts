import type { OperationId } from '@carillon/api'

import { SCHEDULE, type WireRequest } from '../contract/wire-request.ts'

/** Everything of another tenant that a request can name. Of nobody at all, it is of the same shape. */
export interface Theirs {
  readonly tenant: string
  readonly project: string
  readonly scheduleId: string
  readonly runId: string
  readonly grantId: string
  /** Made for one schedule. */
  readonly ownGrantId: string
  readonly keyId: string
  readonly subject: string
  readonly secretName: string
  readonly slot: string
  /** Of the name of their schedule. */
  readonly namePart: string
}

type Attack = (theirs: Theirs) => WireRequest

const SIGNED = { kind: 'http', url: 'http://127.0.0.1:9000/digest' }

/** Requests that a tenant sends with what is another's, wherever the operation takes something. Every operation is listed. */
export const ATTACKS: { readonly [Id in OperationId]: readonly Attack[] } = {
  createSchedule: [
    ({ grantId }) => ({ body: { ...SCHEDULE, grantId } }),
    ({ ownGrantId }) => ({ body: { ...SCHEDULE, grantId: ownGrantId } }),
    ({ secretName }) => ({
      body: { ...SCHEDULE, target: { ...SIGNED, auth: { kind: 'bearer', secretRef: secretName } } },
    }),
    ({ tenant, project }) => ({ body: { ...SCHEDULE, tenantId: tenant, projectId: project } }),
    ({ tenant }) => ({ body: { ...SCHEDULE, tenant_id: tenant } }),
  ],
  previewSchedule: [
    ({ grantId }) => ({ body: { ...SCHEDULE, grantId } }),
    ({ secretName }) => ({
      body: { ...SCHEDULE, target: { ...SIGNED, auth: { kind: 'hmac', secretRef: secretName } } },
    }),
  ],
  listSchedules: [
    ({ namePart }) => ({ query: { q: namePart } }),
    ({ tenant }) => ({ query: { tenant } }),
    ({ project }) => ({ query: { project } }),
    ({ scheduleId }) => ({ query: { cursor: scheduleId } }),
  ],
  getCalendar: [({ tenant }) => ({ query: { tenant } })],
  getSchedule: [({ scheduleId }) => ({ id: scheduleId }), ({ runId }) => ({ id: runId })],
  editSchedule: [
    ({ scheduleId }) => ({ id: scheduleId, headers: { 'if-match': '"1"' }, body: { name: 'mine now' } }),
    ({ scheduleId }) => ({ id: scheduleId, headers: { 'if-match': '*' }, query: { dryRun: 'true' }, body: {} }),
    ({ scheduleId }) => ({ id: scheduleId, body: { name: 'mine now' } }),
  ],
  deleteSchedule: [({ scheduleId }) => ({ id: scheduleId })],
  pauseSchedule: [({ scheduleId }) => ({ id: scheduleId, body: { reason: 'mine now' } })],
  resumeSchedule: [({ scheduleId }) => ({ id: scheduleId })],
  runSchedule: [({ scheduleId }) => ({ id: scheduleId })],
  skipSlot: [({ scheduleId, slot }) => ({ id: scheduleId, body: { scheduledFor: slot } })],
  restoreSlot: [({ scheduleId, slot }) => ({ id: scheduleId, body: { scheduledFor: slot } })],
  listRuns: [({ scheduleId }) => ({ id: scheduleId })],
  listSlots: [({ scheduleId }) => ({ id: scheduleId })],
  getHistory: [({ scheduleId }) => ({ id: scheduleId })],
  getRun: [({ runId }) => ({ id: runId }), ({ scheduleId }) => ({ id: scheduleId })],
  cancelRun: [({ runId }) => ({ id: runId })],
  previewCadence: [({ tenant }) => ({ body: { cadence: SCHEDULE.cadence, tenant } })],
  followEvents: [({ tenant }) => ({ query: { tenant } })],
  createGrant: [({ tenant }) => ({ body: { scopes: ['http:dispatch:*'], tenantId: tenant } })],
  listGrants: [({ grantId }) => ({ query: { cursor: grantId } }), ({ tenant }) => ({ query: { tenant } })],
  getGrant: [({ grantId }) => ({ id: grantId }), ({ ownGrantId }) => ({ id: ownGrantId })],
  renewGrant: [({ grantId }) => ({ id: grantId, body: { expiresAt: null } })],
  revokeGrant: [({ grantId }) => ({ id: grantId }), ({ ownGrantId }) => ({ id: ownGrantId })],
  createKey: [
    ({ tenant, project }) => ({ body: { tenant, project, subject: 'user:mallory', role: 'admin' } }),
    ({ project }) => ({ body: { project, subject: 'user:mallory', role: 'admin' } }),
  ],
  listKeys: [
    ({ tenant, project }) => ({ query: { tenant, project } }),
    ({ project }) => ({ query: { project } }),
    ({ keyId }) => ({ query: { cursor: keyId } }),
  ],
  revokeKey: [
    ({ keyId }) => ({ id: keyId }),
    ({ keyId, tenant, project }) => ({ id: keyId, query: { tenant, project } }),
  ],
  listMembers: [({ tenant }) => ({ query: { tenant } }), ({ subject }) => ({ query: { cursor: subject } })],
  putMember: [({ tenant, subject }) => ({ id: subject, body: { role: 'admin', tenant } })],
  removeMember: [({ subject }) => ({ id: subject })],
  listSecrets: [({ tenant }) => ({ query: { tenant } }), ({ secretName }) => ({ query: { cursor: secretName } })],
  putSecret: [({ secretName, tenant }) => ({ id: secretName, body: { value: 'mine now', tenant } })],
  deleteSecret: [({ secretName }) => ({ id: secretName })],
  getTenant: [({ tenant }) => ({ id: tenant })],
  putTenant: [({ tenant }) => ({ id: tenant, body: { maxSchedulesPerProject: 1 } })],
  deleteProjectSchedules: [({ project }) => ({ id: project })],
  previewPurge: [({ project }) => ({ id: project })],
  purgeProject: [({ project }) => ({ id: project, body: { name: project } })],
  getAudit: [({ tenant }) => ({ query: { tenant } })],
  requestAudit: [({ tenant }) => ({ query: { tenant } })],
}
