import type { Problem } from '@carillon/core'
import { parseTenantHosts } from '@carillon/targets'

/** What is wrong with the hosts that a tenant is to be narrowed to, entry by entry. */
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
