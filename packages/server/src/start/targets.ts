import type { Problem, SecretStore, Target } from '@carillon/core'
import { createHttpTarget, parseTenantHosts } from '@carillon/targets'

import { OperatorError } from './operator-error.ts'
import type { Settings } from './settings.ts'

/** The default of CARILLON_ALLOWED_TARGETS with the embedded Postgres. With any other database the default is no host. */
const LOOPBACK_HOSTS = ['127.0.0.1', 'localhost', '[::1]']

const FACTORIES: Readonly<Record<string, (settings: Settings, secrets: SecretStore) => Target>> = {
  http: ({ allowedTargets, databaseUrl }, secrets) =>
    createHttpTarget({
      allowedHosts: allowedTargets ?? (databaseUrl === null ? LOOPBACK_HOSTS : []),
      secrets,
    }),
}

/** The kinds of target that this version includes. */
const TARGET_KINDS: readonly string[] = Object.keys(FACTORIES)

/** The secret store of a server, which validates targets but never calls them. */
export const NO_SECRETS: SecretStore = {
  resolve: () => Promise.reject(new Error('expected a worker to resolve a secret, got a server')),
}

/** @throws OperatorError for an unknown kind */
export function requireKnownKinds(kinds: readonly string[]): void {
  if (kinds.length === 0) throw unknownKind('none')
  const unknown = kinds.find((kind) => !Object.hasOwn(FACTORIES, kind))
  if (unknown !== undefined) throw unknownKind(JSON.stringify(unknown))
}

/** @param secrets resolves the secrets that a target's `auth` refers to */
export function createTargets(
  settings: Settings,
  secrets: SecretStore,
  kinds: readonly string[] = TARGET_KINDS,
): Target[] {
  requireKnownKinds(kinds)
  return [...new Set(kinds)].flatMap((kind) => FACTORIES[kind]?.(settings, secrets) ?? [])
}

/** Checks the allowed hosts of a tenant entry by entry. */
export function hostProblems(hosts: readonly string[]): Problem[] {
  return hosts.flatMap((host, index) => {
    try {
      parseTenantHosts([host])
      return []
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      return [{ path: `allowedHosts.${index}`, message: error.message }]
    }
  })
}

function unknownKind(found: string): OperatorError {
  return new OperatorError(
    'unknown_target_kind',
    `--targets: expected kinds of target that this Carillon knows (${TARGET_KINDS.join(', ')}), got ${found}`,
  )
}
