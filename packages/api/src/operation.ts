import type { z } from 'zod'

import type { ProblemCode } from './problem.ts'
import type { ROLES } from './schemas/key.ts'

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete'

/** What a success looks like. */
interface Success {
  readonly status: 200 | 201 | 202 | 204
  readonly description: string
  readonly schema?: z.ZodType
  /** @default 'application/json' */
  readonly mediaType?: string
  /** Headers of the answer, with what they say. */
  readonly headers?: Readonly<Record<string, string>>
}

/** One thing that the service can be asked: the one source of its route, its document, its client and its tests. */
export interface Operation {
  readonly method: Method
  /** Below `/api/v1`, with parameters in braces. */
  readonly path: string
  readonly tag:
    | 'schedules'
    | 'runs'
    | 'cadence'
    | 'events'
    | 'grants'
    | 'secrets'
    | 'members'
    | 'keys'
    | 'tenants'
    | 'projects'
    | 'audit'
  readonly summary: string
  readonly description?: string
  /** The least role that may ask. */
  readonly role: (typeof ROLES)[number]
  /** Whether only the key of the installation may ask. */
  readonly isForInstallation?: boolean
  readonly params?: z.ZodObject
  readonly query?: z.ZodObject
  /** Headers of the request besides Authorization, in lower case. */
  readonly headers?: z.ZodObject
  readonly body?: z.ZodType
  readonly success: Success
  /** Besides those that `problemsOf` adds, which any operation may meet. */
  readonly problems: readonly ProblemCode[]
}
