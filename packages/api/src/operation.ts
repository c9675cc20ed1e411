import type { z } from 'zod'

import type { ProblemCode } from './problem.ts'
import type { Role } from './words.ts'

/** The path of every operation begins with this one. */
export const API_PREFIX = '/api/v1'

/** Where a server or worker listens, and where it keeps its files, unless its settings say otherwise. */
export const SERVICE_DEFAULTS = { host: '127.0.0.1', port: 7400, metricsPort: 7401, dataDir: '.carillon' } as const

/** The file of the data directory that holds the admin key, unless CARILLON_ADMIN_KEY names one. */
export const ADMIN_KEY_FILE = 'admin.key'

/** The groups of operations, with what each is about. */
export const TAGS = {
  schedules: 'What runs, when, by which grant and under which policy.',
  runs: 'The ledger: what happened to every slot.',
  cadence: 'When a cadence is due, without creating anything.',
  events: 'Changes of runs and schedules, live.',
  grants: 'Permissions to execute.',
  secrets: 'Credentials that targets send. No answer holds their values.',
  members: 'Roles of subjects in a project.',
  keys: 'API keys.',
  tenants: 'Limits of tenants.',
  projects: 'Operations on a whole project.',
  audit: 'Whether every slot has its line in the ledger.',
} as const

/** The answer to a request that succeeds. */
interface Success {
  readonly status: 200 | 201 | 202 | 204
  readonly description: string
  readonly schema?: z.ZodType
  /** @default 'application/json' */
  readonly mediaType?: string
  /** Headers of the answer, each with its description. */
  readonly headers?: Readonly<Record<string, string>>
}

/** One operation of the API: the one source of its route, its document, its client and its tests. */
export interface Operation {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete'
  /** The path below `API_PREFIX`, with parameters in braces. */
  readonly path: string
  readonly tag: keyof typeof TAGS
  readonly summary: string
  readonly description?: string
  /** The least role that may call it. */
  readonly role: Role
  /** True if only the admin key may call it, or a browser that is signed in with it. */
  readonly needsAdminKey?: boolean
  readonly params?: z.ZodObject
  readonly query?: z.ZodObject
  /** Headers of the request besides Authorization, in lower case. */
  readonly headers?: z.ZodObject
  readonly body?: z.ZodType
  readonly success: Success
  /** The problems that the operation may answer with, besides those that `problemsOf` adds to every operation. */
  readonly problems: readonly ProblemCode[]
}

/** Every problem that an operation may answer with. */
export function problemsOf(operation: Operation): ProblemCode[] {
  return [
    // Any operation answers with it if the query has an unknown parameter.
    'invalid_input',
    ...(operation.body === undefined ? [] : (['malformed_json', 'body_too_large', 'unsupported_media_type'] as const)),
    'unauthenticated',
    // Any other operation answers with `forbidden` to a removed member, who may not even read.
    operation.needsAdminKey === true ? 'admin_key_required' : 'forbidden',
    ...operation.problems,
    'rate_limited',
    'unavailable',
  ]
}

/** `if-match` in its usual spelling: `If-Match`. */
export function headerName(name: string): string {
  return name
    .split('-')
    .map((word) => (word === 'id' ? 'ID' : word.charAt(0).toUpperCase() + word.slice(1)))
    .join('-')
}
