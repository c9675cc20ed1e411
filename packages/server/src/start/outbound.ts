import type { Problem } from '@carillon/core'
import { GuardedClient, parseTenantHosts } from '@carillon/outbound'

import type { Settings } from './settings.ts'

/** The default of CARILLON_ALLOWED_TARGETS with the embedded Postgres. With any other database the default is no host. */
const LOOPBACK_HOSTS = ['127.0.0.1', 'localhost', '[::1]']

/** The one client for addresses that tenants choose. All modules of the process share it. */
export function createOutbound({ allowedTargets, databaseUrl }: Settings): GuardedClient {
  return new GuardedClient({ allowedHosts: allowedTargets ?? (databaseUrl === null ? LOOPBACK_HOSTS : []) })
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
