import type { Outcome, Problem, TargetLimits } from '@carillon/core'

import { parseTenantHosts, type AllowedHosts } from './allowed-hosts.ts'
import { addressOf, portOf } from './host-pattern.ts'

/** Whose list does not hold a host. */
export type HostFault = 'installation' | 'tenant'

/** Undefined if both lists hold it. A tenant's list only narrows: what the installation does not hold, it cannot add. */
export function hostFault(url: URL | null, hosts: AllowedHosts, limits: TargetLimits): HostFault | undefined {
  if (url === null || !hosts.allowsHost(url)) return 'installation'
  return limits.allowedHosts === null || isWithin(url, limits.allowedHosts) ? undefined : 'tenant'
}

/** All that can be told of a URL before its name is resolved. */
export function urlProblems(url: URL | null, hosts: AllowedHosts, limits: TargetLimits): Problem[] {
  const fault = hostFault(url, hosts, limits)
  if (fault !== undefined) return [urlProblem(EXPECTED[fault], url)]
  const address = url === null ? undefined : addressOf(url)
  if (url === null || address === undefined || hosts.allowsAddress(address.toString(), portOf(url))) return []
  return [urlProblem(EXPECTED.address, url)]
}

const EXPECTED = {
  installation: 'a host that this installation may call (CARILLON_ALLOWED_TARGETS)',
  tenant: 'a host that this tenant may call (its allowedHosts)',
  address: 'a public address, or one that this installation lists (CARILLON_ALLOWED_TARGETS)',
}

export function hostRefusal(fault: HostFault, url: URL | null): Outcome {
  const error = {
    code: 'host_not_allowed',
    message: `This ${fault} may not call ${hostText(url)}; nothing was sent.`,
  }
  return { kind: 'failed', error, retryable: false }
}

/** Which address it is, is not told: it says how the network behind this installation is built. */
export function addressRefusal(url: URL): Outcome {
  const error = {
    code: 'address_not_allowed',
    message:
      `The host ${hostText(url)} leads to an address that this installation does not call; nothing was sent. ` +
      'Addresses that are not public must be listed (CARILLON_ALLOWED_TARGETS).',
  }
  return { kind: 'failed', error, retryable: false }
}

function isWithin(url: URL, tenantHosts: readonly string[]): boolean {
  try {
    return parseTenantHosts(tenantHosts).allowsHost(url)
  } catch {
    // It was checked when it was written. One that cannot be read any more allows nothing.
    return false
  }
}

function urlProblem(expected: string, url: URL | null): Problem {
  return { path: 'url', message: `Expected ${expected}, but found ${hostText(url)}.` }
}

function hostText(url: URL | null): string {
  return url === null ? 'a URL without one' : url.host
}
