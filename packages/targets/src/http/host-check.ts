import type { Outcome, Problem, TargetLimits } from '@carillon/core'

import { parseTenantHosts, type AllowedHosts } from './allowed-hosts.ts'
import type { Destination } from './destination.ts'
import { addressOf, portOf } from './host-pattern.ts'

/** Whose list does not hold a host. */
export type HostFault = 'installation' | 'tenant'

/** Undefined if both lists hold it. A tenant's list only narrows: what the installation does not hold, it cannot add. */
export function hostFault(destination: Destination | undefined, limits: TargetLimits): HostFault | undefined {
  if (destination === undefined || !destination.isListed) return 'installation'
  return limits.allowedHosts === null || isWithin(destination.url, limits.allowedHosts) ? undefined : 'tenant'
}

/** All that can be told of a URL before its name is resolved. */
export function urlProblems(
  destination: Destination | undefined,
  hosts: AllowedHosts,
  limits: TargetLimits,
): Problem[] {
  const fault = hostFault(destination, limits)
  if (destination === undefined || fault !== undefined) {
    return [urlProblem(EXPECTED[fault ?? 'installation'], destination)]
  }
  const address = addressOf(destination.url)
  if (address === undefined || hosts.allowsAddress(address.toString(), portOf(destination.url))) return []
  return [urlProblem(EXPECTED.address, destination)]
}

const EXPECTED = {
  installation: 'a host that this installation may call (CARILLON_ALLOWED_TARGETS)',
  tenant: 'a host that this tenant may call (its allowedHosts)',
  address: 'a public address, or one that this installation lists (CARILLON_ALLOWED_TARGETS)',
}

export function hostRefusal(fault: HostFault, destination: Destination | undefined): Outcome {
  const error = {
    code: 'host_not_allowed',
    message: `This ${fault} may not call ${hostText(destination)}; nothing was sent.`,
  }
  return { kind: 'failed', error, retryable: false }
}

/** Which address it is, is not told: it says how the network behind this installation is built. */
export function addressRefusal(url: URL): Outcome {
  const error = {
    code: 'address_not_allowed',
    message:
      `The host ${url.host} leads to an address that this installation does not call; nothing was sent. ` +
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

function urlProblem(expected: string, destination: Destination | undefined): Problem {
  return { path: 'url', message: `Expected ${expected}, but found ${hostText(destination)}.` }
}

function hostText(destination: Destination | undefined): string {
  return destination === undefined ? 'a URL without one' : destination.url.host
}
