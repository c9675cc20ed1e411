import { expectedText, NAME_PATTERN, NAME_SHAPE } from '@carillon/api'

import { invalidInput } from './errors.ts'

/** The tenant and project that a transaction sees. Postgres hides every other row from it (I9). */
export interface Scope {
  readonly tenantId: string
  readonly projectId: string
}

/** Who makes a request. Every read and write happens within this tenant and project. */
export interface Caller extends Scope {
  /** Typed: `user:alice`, `service:billing`. Recorded with every change. */
  readonly subject: string
}

/**
 * The scope of a caller.
 * @throws CarillonError `invalid_input` if the tenant or the project has an illegal name
 */
export function scopeOf({ tenantId, projectId }: Scope): Scope {
  requireName('tenant', tenantId)
  requireName('project', projectId)
  return { tenantId, projectId }
}

function requireName(path: string, name: unknown): void {
  if (typeof name === 'string' && NAME_PATTERN.test(name)) return
  throw invalidInput([{ path, message: expectedText(NAME_SHAPE, name) }])
}
