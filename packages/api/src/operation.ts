import type { z } from 'zod'

import type { Problem, ProblemCode } from './problem.ts'
import type { Role } from './words.ts'

/** The path of every operation of Carillon itself begins with this one. */
export const API_PREFIX = '/api/v1'

/** Where a server or worker listens, and where it keeps its files, unless its settings say otherwise. */
export const SERVICE_DEFAULTS = { host: '127.0.0.1', port: 7400, metricsPort: 7401, dataDir: '.carillon' } as const

/** The file of the data directory that holds the admin key, unless CARILLON_ADMIN_KEY names one. */
export const ADMIN_KEY_FILE = 'admin.key'

/** The groups of Carillon's own operations, with what each is about. */
export const TAGS = {
  schedules: 'What runs, when, by which grant and under which policy.',
  targets: 'What schedules can call.',
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

/** An operation whose caller is authenticated before its handler is called. */
interface RoleAccess {
  /** The least role of the key, the token or the signed-in browser. */
  readonly role: Role
  readonly access?: 'role'
  /** True if only the admin key may call it, or a browser that is signed in with it. */
  readonly needsAdminKey?: boolean
  /** The path parameter that must be the caller's project: any other value is answered with `project_not_found`. */
  readonly projectParam?: string
}

/**
 * An operation whose handler proves the caller itself, as callbacks and webhooks do. The server reads no credentials, and limits the
 * rate per IP address.
 */
interface OwnAccess {
  readonly access: 'own'
  readonly role?: never
  readonly needsAdminKey?: never
  readonly projectParam?: never
}

/** How an operation writes its refusals, if not as problems. For APIs that keep the format of an earlier system. */
interface OwnErrors {
  /** Describes the bodies in the document. */
  readonly schema: z.ZodType
  /** Makes the body of a refusal. The status stays that of the problem. */
  readonly toBody: (problem: Problem) => unknown
  /** @default 'application/json' */
  readonly mediaType?: string
}

interface OperationShape {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete'
  /** The path below `prefix`, with any number of parameters in braces: `/threads/{thread}/tasks/{task}`. */
  readonly path: string
  /** What the path begins with; `''` for a path from the root. @default `API_PREFIX` */
  readonly prefix?: string
  /** The group in the document: one of `TAGS`, or the name of the module that brings the operation. */
  readonly tag: string
  readonly summary: string
  readonly description?: string
  /** The parameters in the path: one field for each. */
  readonly params?: z.ZodObject
  readonly query?: z.ZodObject
  /** Headers of the request besides Authorization, in lower case. An operation with `access: 'own'` may name `authorization` too. */
  readonly headers?: z.ZodObject
  readonly body?: z.ZodType
  readonly success: Success
  /** The problems that the operation may answer with, besides those that `problemsOf` adds to every operation. */
  readonly problems: readonly ProblemCode[]
  /** @default problems, as RFC 9457 says */
  readonly errors?: OwnErrors
}

/**
 * One operation over HTTP, of Carillon or of a module: the one source of its route, its document, its client and its tests. Several
 * operations may share a path, each with another method.
 */
export type Operation = OperationShape & (RoleAccess | OwnAccess)

/** Operations by their ids. */
export type OperationTable = Readonly<Record<string, Operation>>

/** The path of an operation from the root, with its parameters in braces. */
export function pathOf({ prefix = API_PREFIX, path }: Pick<Operation, 'prefix' | 'path'>): string {
  return `${prefix}${path}`
}

/** The names of the parameters in a path, in order. */
export function paramsIn(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
}

/** Every problem that an operation may answer with. */
export function problemsOf(operation: Operation): ProblemCode[] {
  const codes: ProblemCode[] = [
    // Any operation answers with it if the query has an unknown parameter.
    'invalid_input',
    ...(operation.body === undefined ? [] : (['malformed_json', 'body_too_large', 'unsupported_media_type'] as const)),
    ...accessProblemsOf(operation),
    ...operation.problems,
    'rate_limited',
    'unavailable',
  ]
  return [...new Set(codes)]
}

function accessProblemsOf({ access, needsAdminKey, projectParam }: Operation): ProblemCode[] {
  if (access === 'own') return []
  return [
    'unauthenticated',
    // Any other operation answers with `forbidden` to a removed member, who may not even read.
    needsAdminKey === true ? 'admin_key_required' : 'forbidden',
    ...(projectParam === undefined ? [] : (['project_not_found'] as const)),
  ]
}

/** `if-match` in its usual spelling: `If-Match`. */
export function headerName(name: string): string {
  return name
    .split('-')
    .map((word) => (word === 'id' ? 'ID' : word.charAt(0).toUpperCase() + word.slice(1)))
    .join('-')
}
