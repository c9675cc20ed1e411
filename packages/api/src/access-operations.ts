import { z } from 'zod'

import { byId } from './by-id.ts'
import { expected } from './expected.ts'
import type { Operation } from './operation.ts'
import { grant, grantInput, grantPage, grantRenewal } from './schemas/grant.ts'
import { apiKey, apiKeyPage, keyRequest, newApiKey } from './schemas/key.ts'
import { member, memberInput, memberPage } from './schemas/member.ts'
import { pageQuery } from './schemas/page.ts'
import { purgeCounts, purgeRequest } from './schemas/purge.ts'
import { deletedSchedules } from './schemas/schedule.ts'
import { secret, secretInput, secretPage } from './schemas/secret.ts'
import { tenant, tenantInput } from './schemas/tenant.ts'

const placeName = (what: string) =>
  z
    .string(expected(what))
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, expected(what))
    .optional()
    .meta({ description: 'Without it the caller’s.' })

const keyPlace = { tenant: placeName('the id of a tenant'), project: placeName('the id of a project') }

/** Operations about who may do what, and about all of a project or tenant. */
export const accessOperations = {
  createGrant: {
    method: 'post',
    path: '/grants',
    tag: 'grants',
    summary: 'Give a right to execute',
    role: 'admin',
    body: grantInput,
    success: { status: 201, description: 'The grant.', schema: grant },
    problems: [],
  },
  listGrants: {
    method: 'get',
    path: '/grants',
    tag: 'grants',
    summary: 'List grants, the newest first',
    role: 'member',
    query: z.strictObject(pageQuery),
    success: { status: 200, description: 'A page.', schema: grantPage },
    problems: [],
  },
  getGrant: {
    method: 'get',
    path: '/grants/{id}',
    tag: 'grants',
    summary: 'Get a grant',
    role: 'member',
    params: byId,
    success: { status: 200, description: 'The grant.', schema: grant },
    problems: ['grant_not_found'],
  },
  renewGrant: {
    method: 'post',
    path: '/grants/{id}/renew',
    tag: 'grants',
    summary: 'Let a grant last until another instant',
    description: 'Also one that has expired. What was revoked is not given back: make another.',
    role: 'admin',
    params: byId,
    body: grantRenewal,
    success: { status: 200, description: 'The grant.', schema: grant },
    problems: ['grant_not_found', 'state_conflict'],
  },
  revokeGrant: {
    method: 'post',
    path: '/grants/{id}/revoke',
    tag: 'grants',
    summary: 'Revoke a grant',
    description: 'Slots that come due by it are skipped from now on. Revoking twice changes nothing.',
    role: 'admin',
    params: byId,
    success: { status: 200, description: 'The grant.', schema: grant },
    problems: ['grant_not_found'],
  },
  listSecrets: {
    method: 'get',
    path: '/secrets',
    tag: 'secrets',
    summary: 'List secrets by name',
    description: 'Never their values.',
    role: 'member',
    query: z.strictObject(pageQuery),
    success: { status: 200, description: 'A page.', schema: secretPage },
    problems: [],
  },
  putSecret: {
    method: 'put',
    path: '/secrets/{id}',
    tag: 'secrets',
    summary: 'Keep a secret',
    description: 'The id is its name. Attempts use the value from the next one on; it is never answered again.',
    role: 'admin',
    params: byId,
    body: secretInput,
    success: { status: 200, description: 'The secret, without its value.', schema: secret },
    problems: ['secrets_unavailable'],
  },
  deleteSecret: {
    method: 'delete',
    path: '/secrets/{id}',
    tag: 'secrets',
    summary: 'Delete a secret',
    description: 'For good. Attempts of schedules that still refer to it fail.',
    role: 'admin',
    params: byId,
    success: { status: 204, description: 'Deleted.' },
    problems: ['secret_not_found'],
  },
  listMembers: {
    method: 'get',
    path: '/members',
    tag: 'members',
    summary: 'List members by subject, removed ones too',
    role: 'member',
    query: z.strictObject(pageQuery),
    success: { status: 200, description: 'A page.', schema: memberPage },
    problems: [],
  },
  putMember: {
    method: 'put',
    path: '/members/{id}',
    tag: 'members',
    summary: 'Say what somebody may do',
    description:
      'The id is a typed subject such as `user:alice`, percent-encoded. The role is the most that it may do, whatever ' +
      'its key or token says. Whoever was removed is back.',
    role: 'admin',
    params: byId,
    body: memberInput,
    success: { status: 200, description: 'The member.', schema: member },
    problems: [],
  },
  removeMember: {
    method: 'delete',
    path: '/members/{id}',
    tag: 'members',
    summary: 'Remove a member',
    description:
      'Its keys and tokens are refused from the next request on, and the slots of its schedules are skipped as `access_lost`. ' +
      'Whoever was not listed is from then on, as removed: see by the answer that it is who was meant. Removing twice changes nothing.',
    role: 'admin',
    params: byId,
    success: { status: 200, description: 'The member.', schema: member },
    problems: [],
  },
  createKey: {
    method: 'post',
    path: '/keys',
    tag: 'keys',
    summary: 'Make an API key',
    description: 'Only the key of the installation may make keys of another tenant or project.',
    role: 'admin',
    body: keyRequest,
    success: { status: 201, description: 'The key, this once.', schema: newApiKey },
    problems: [],
  },
  listKeys: {
    method: 'get',
    path: '/keys',
    tag: 'keys',
    summary: 'List API keys, the newest first',
    description: 'Only the key of the installation may name another tenant or project.',
    role: 'admin',
    query: z.strictObject({ ...keyPlace, ...pageQuery }),
    success: { status: 200, description: 'A page.', schema: apiKeyPage },
    problems: [],
  },
  revokeKey: {
    method: 'delete',
    path: '/keys/{id}',
    tag: 'keys',
    summary: 'Revoke an API key',
    description: 'At once. Only the key of the installation may name another tenant or project.',
    role: 'admin',
    params: byId,
    query: z.strictObject(keyPlace),
    success: { status: 200, description: 'The key.', schema: apiKey },
    problems: ['key_not_found'],
  },
  getTenant: {
    method: 'get',
    path: '/tenants/{id}',
    tag: 'tenants',
    summary: 'What a tenant may have',
    description: 'Of the caller’s own; of any to the key of the installation.',
    role: 'member',
    params: byId,
    success: { status: 200, description: 'The tenant.', schema: tenant },
    problems: ['tenant_not_found'],
  },
  putTenant: {
    method: 'put',
    path: '/tenants/{id}',
    tag: 'tenants',
    summary: 'Say what a tenant may have',
    description: 'In the place of all that was said before.',
    role: 'admin',
    isForInstallation: true,
    params: byId,
    body: tenantInput,
    success: { status: 200, description: 'The tenant.', schema: tenant },
    problems: [],
  },
  deleteProjectSchedules: {
    method: 'delete',
    path: '/projects/{id}/schedules',
    tag: 'projects',
    summary: 'Delete everything of a project',
    description: 'In one transaction. Only of the caller’s own project.',
    role: 'admin',
    params: byId,
    success: { status: 200, description: 'How many were deleted.', schema: deletedSchedules },
    problems: ['project_not_found'],
  },
  previewPurge: {
    method: 'get',
    path: '/projects/{id}/purge',
    tag: 'projects',
    summary: 'Count what a purge would remove',
    description: 'Only of the caller’s own project.',
    role: 'admin',
    params: byId,
    success: { status: 200, description: 'The counts.', schema: purgeCounts },
    problems: ['project_not_found'],
  },
  purgeProject: {
    method: 'post',
    path: '/projects/{id}/purge',
    tag: 'projects',
    summary: 'Remove everything that is left of a project',
    description:
      'For good: the ledger, grants, secrets, and those members whose entry takes nothing away. Its schedules must have been ' +
      'deleted, and nothing may run. Keys stay, and so do members that were removed or may only read. Only of the caller’s ' +
      'own project.',
    role: 'admin',
    params: byId,
    body: purgeRequest,
    success: { status: 200, description: 'How much was removed.', schema: purgeCounts },
    problems: ['project_not_found', 'purge_refused', 'state_conflict'],
  },
} as const satisfies Readonly<Record<string, Operation>>
