import type { SecretStore, Target } from '@carillon/core'
import { createHttpTarget } from '@carillon/targets'

import { ServiceError } from './service-error.ts'
import type { Settings } from './settings.ts'

/** What a schedule may call if nobody said so: on a machine of one's own, what runs there; elsewhere, nothing. */
const LOOPBACK_HOSTS = ['127.0.0.1', 'localhost', '[::1]']

const FACTORIES: Readonly<Record<string, (settings: Settings, secrets: SecretStore) => Target>> = {
  http: ({ allowedTargets, databaseUrl }, secrets) =>
    createHttpTarget({
      allowedHosts: allowedTargets ?? (databaseUrl === null ? LOOPBACK_HOSTS : []),
      secrets,
    }),
}

/** The kinds of target that this version brings. */
export const TARGET_KINDS: readonly string[] = Object.keys(FACTORIES)

/** @throws ServiceError for a kind that is not known */
export function requireKnownKinds(kinds: readonly string[]): void {
  if (kinds.length === 0) throw unknownKind('none')
  const unknown = kinds.find((kind) => !Object.hasOwn(FACTORIES, kind))
  if (unknown !== undefined) throw unknownKind(JSON.stringify(unknown))
}

/** @param secrets where targets find what their `auth` refers to */
export function createTargets(
  settings: Settings,
  secrets: SecretStore,
  kinds: readonly string[] = TARGET_KINDS,
): Target[] {
  requireKnownKinds(kinds)
  return [...new Set(kinds)].flatMap((kind) => FACTORIES[kind]?.(settings, secrets) ?? [])
}

function unknownKind(found: string): ServiceError {
  return new ServiceError(
    'unknown_target_kind',
    `--targets: expected kinds of target that this Carillon knows (${TARGET_KINDS.join(', ')}), got ${found}`,
  )
}
