import { systemClock, type AccessRequest, type AuthorizationPort, type Clock, type Role } from '@carillon/core'
import { z } from 'zod'

import { fetchJson } from '../bounded-fetch.ts'
import { AuthorizationUnavailableError } from './authorization-unavailable-error.ts'
import { openFgaProject, openFgaUser } from './open-fga-names.ts'

export interface OpenFgaOptions {
  /** Where its HTTP API is, such as `https://fga.example.com`. */
  readonly url: string
  readonly storeId: string
  /** Null: the latest model of the store. @default null */
  readonly modelId?: string | null
  /** Sent as `Authorization: Bearer`. Null: none. @default null */
  readonly token?: string | null
  /** What somebody must be to a project to act in each role. @default can_read and can_write */
  readonly relations?: Readonly<Record<Role, string>>
  /** What a project is called there. @default `project:<tenant>/<project>` */
  readonly objectOf?: (place: Pick<AccessRequest, 'tenantId' | 'projectId'>) => string
  /** For the time limit. @default the system's */
  readonly clock?: Pick<Clock, 'after'>
}

export const OPEN_FGA_RELATIONS_DEFAULT: Readonly<Record<Role, string>> = { member: 'can_read', admin: 'can_write' }

const TIMEOUT_MS = 2000
const MAX_BYTES = 64 * 1024

const checkAnswer = z.object({ allowed: z.boolean() })

/**
 * Asks an OpenFGA server who may do what. Nothing is remembered, here or there: unless told otherwise OpenFGA may answer from a
 * cache that is seconds old, and whoever was removed would act on (G-5).
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
        const message =
          'expected OpenFGA to say whether somebody may act in a project, got no such answer: see the cause'
        throw new AuthorizationUnavailableError(message, { cause })
      }
    },
  }
}
