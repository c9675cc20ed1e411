import { ADMIN_KEY_PHRASE, foundText, type Operation } from '@carillon/api'
import type { FastifyRequest } from 'fastify'

import type { Identity } from '../auth/identity.ts'
import { ProblemError, unavailableProblem } from './problems.ts'
import { isSameOrigin } from './sign-in.ts'

export function requireIdentity({ identity }: FastifyRequest, operation: Operation): Identity {
  if (identity !== undefined) return identity
  const detail = 'expected a valid API key: send it as "Authorization: Bearer <key>"'
  // A calendar program asks its user for a password only after a Basic challenge.
  const challenge = isCalendar(operation) ? 'Bearer, Basic realm="Carillon"' : 'Bearer'
  throw new ProblemError('unauthenticated', detail, { headers: { 'www-authenticate': challenge } })
}

export function isCalendar({ success }: Operation): boolean {
  return success.mediaType === 'text/calendar'
}

/** Checks the role in the key, the token or the session. `preParsing` then checks whether the subject may act in the project. */
export function requireRole(request: FastifyRequest, operation: Operation): Identity {
  const { method, role, needsAdminKey = false } = operation
  const identity = requireIdentity(request, operation)
  const isBySession = request.headers.authorization === undefined
  if (isBySession && method !== 'get' && !isSameOrigin(request.headers)) {
    const detail = 'expected a request from a page of this server, got another: use an API key'
    throw new ProblemError('forbidden', detail)
  }
  if (needsAdminKey && !identity.isInstallation) {
    const detail = `expected ${ADMIN_KEY_PHRASE}, got another key: use it, or ask the operator of this server`
    throw new ProblemError('admin_key_required', detail)
  }
  if (role === 'admin' && identity.role !== 'admin') {
    throw new ProblemError('forbidden', 'expected a key with the role admin, got a member: a member may only read')
  }
  return identity
}

/** Turns a permission check that throws into the problem `unavailable`, so that it never lets a request through. */
export async function failClosed(check: () => Promise<boolean>): Promise<boolean> {
  try {
    return await check()
  } catch (error) {
    throw unavailableProblem(error)
  }
}

export function notAllowed({ role }: Operation): ProblemError {
  const expected = role === 'admin' ? 'a subject that may write in this project' : 'a member of this project'
  return new ProblemError('forbidden', `expected ${expected}, got another: ask an admin of the project to add you`)
}

/** I9: a caller must not learn whether another project exists. */
export function requireOwnProject({ projectParam }: Operation, { caller }: Identity, params: unknown): void {
  if (projectParam === undefined) return
  const id = (params as Readonly<Record<string, unknown>>)[projectParam]
  if (id === caller.projectId) return
  throw new ProblemError('project_not_found', `expected the project of the calling key, got ${foundText(id)}`)
}
