import type { Caller } from './caller.ts'
import { invalidInput } from './errors.ts'
import { foundText } from './policy/found-text.ts'
import type { Place } from './store/walled-transaction.ts'

/** Begins with a letter or digit, so that nobody is `_platform`, which is the installation itself (E-30). */
export const PLACE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/

export const PLACE_NAME_EXPECTED =
  '1 to 100 letters, digits, dots, dashes or underscores that begin with a letter or digit'

/**
 * Where a caller's statements look (I9).
 * @throws CarillonError `invalid_input` for a tenant or project that nobody may be
 */
export function placeOf({ tenantId, projectId }: Pick<Caller, 'tenantId' | 'projectId'>): Place {
  requireName('tenant', tenantId)
  requireName('project', projectId)
  return { tenantId, projectId }
}

function requireName(path: string, name: unknown): void {
  if (typeof name === 'string' && PLACE_NAME.test(name)) return
  throw invalidInput([{ path, message: `expected ${PLACE_NAME_EXPECTED}, got ${foundText(name)}` }])
}
