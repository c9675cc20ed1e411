import { systemClock, type AccessRequest, type AuthorizationPort, type Clock, type Role } from '@carillon/core'
import { z } from 'zod'

import { fetchJson } from './fetch-json.ts'

export interface OpenFgaOptions {
  /** The base URL of OpenFGA's HTTP API, such as `https://fga.example.com`. */
  readonly url: string
  readonly storeId: string
  /** Null: OpenFGA uses the newest model of the store. @default null */
  readonly modelId?: string | null
  /** Sent as `Authorization: Bearer`. Null: no such header is sent. @default null */
  readonly token?: string | null
  /** The relation to a project that each role requires. @default can_read and can_write */
  readonly relations?: Readonly<Record<Role, string>>
  /** The OpenFGA object of a project. @default `project:<tenant>/<project>` */
  readonly objectOf?: (scope: Pick<AccessRequest, 'tenantId' | 'projectId'>) => string
  /** Measures the time limit. @default the system's clock */
  readonly clock?: Pick<Clock, 'after'>
}

export const OPEN_FGA_RELATIONS_DEFAULT: Readonly<Record<Role, string>> = { member: 'can_read', admin: 'can_write' }

const TIMEOUT_MS = 2000
const MAX_BYTES = 64 * 1024

const checkAnswer = z.object({ allowed: z.boolean() })

/** OpenFGA answered neither yes nor no. The request is not allowed now, but may be tried again later. */
export class AuthorizationUnavailableError extends Error {
  override readonly name = 'AuthorizationUnavailableError'
}

/**
 * Asks an OpenFGA server for each permission check. Answers are not cached here, and HIGHER_CONSISTENCY tells OpenFGA not to
 * answer from its own cache: a removed member loses access at once.
 *
 * Fails closed: throws AuthorizationUnavailableError unless the answer is a plain yes or no.
 */
export function createOpenFga(options: OpenFgaOptions): AuthorizationPort {
  const { storeId, modelId = null, token = null, clock = systemClock } = options
  const { relations = OPEN_FGA_RELATIONS_DEFAULT, objectOf = openFgaProject } = options
  const url = `${options.url.replace(/\/+$/, '')}/stores/${encodeURIComponent(storeId)}/check`
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json',
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
  }

  async function check(request: AccessRequest): Promise<boolean> {
    const body = JSON.stringify({
      tuple_key: {
        user: openFgaUser(request.subject),
        relation: relations[request.role],
        object: objectOf(request),
      },
      ...(modelId === null ? {} : { authorization_model_id: modelId }),
      consistency: 'HIGHER_CONSISTENCY',
    })
    const bounds = { timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES, clock }
    return checkAnswer.parse(await fetchJson({ url, method: 'POST', headers, body }, bounds)).allowed
  }

  return {
    isAllowed: async (request) => {
      try {
        return await check(request)
      } catch (cause) {
        throw new AuthorizationUnavailableError('expected a yes or a no from OpenFGA, got neither: see the cause', {
          cause,
        })
      }
    },
  }
}

/**
 * A subject such as `user:alice` as OpenFGA writes it. Characters with a meaning in OpenFGA are percent-encoded within the
 * name, so that no name can stand for everyone (`user:*`) or for a group (`team:web#member`).
 */
function openFgaUser(subject: string): string {
  const colon = subject.indexOf(':')
  return subject.slice(0, colon + 1) + subject.slice(colon + 1).replaceAll(/[%:#*]/g, percentEncode)
}

/** `project:<tenant>/<project>`. Neither part can contain a slash, so two projects never share a name. */
function openFgaProject({ tenantId, projectId }: Pick<AccessRequest, 'tenantId' | 'projectId'>): string {
  return `project:${encodeURIComponent(tenantId)}/${encodeURIComponent(projectId)}`
}

function percentEncode(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`
}
