import type { Target } from '@carillon/core'
import { createHttpTarget } from '@carillon/targets'

import { ServiceError } from './service-error.ts'
import type { Settings } from './settings.ts'

/** What a schedule may call if nobody said so: on a machine of one's own, what runs there; elsewhere, nothing. */
const LOOPBACK_HOSTS = ['127.0.0.1', 'localhost', '[::1]']

const FACTORIES: Readonly<Record<string, (settings: Settings) => Target>> = {
  http: ({ allowedTargets, databaseUrl }) =>
    createHttpTarget({
      allowedHosts: allowedTargets ?? (databaseUrl === null ? LOOPBACK_HOSTS : []),
    }),
}

/** The kinds of target that this version brings. */
export const TARGET_KINDS: readonly string[] = Object.keys(FACTORIES)

/** @throws ServiceError for a kind that is not known */
export function createTargets(settings: Settings, kinds: readonly string[] = TARGET_KINDS): Target[] {
  if (kinds.length === 0) throw unknownKind('none')
  return [...new Set(kinds)].map((kind) => {
    const create = Object.hasOwn(FACTORIES, kind) ? FACTORIES[kind] : undefined
    if (create === undefined) throw unknownKind(JSON.stringify(kind))
    return create(settings)
  })
}

function unknownKind(found: string): ServiceError {
  return new ServiceError(
    'unknown_target_kind',
    `--targets: expected kinds of target that this Carillon knows (${TARGET_KINDS.join(', ')}), got ${found}`,
  )
}
