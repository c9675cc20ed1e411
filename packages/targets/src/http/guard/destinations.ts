import type { Outcome, Problem, TargetLimits } from '@carillon/core'
import { LRUCache } from 'lru-cache'

import { addressOf, hostOf, parseTenantHosts, portOf, type AllowedHosts } from './hosts.ts'

/** What Carillon knows about a URL. It can be cached, because it does not change while the process runs. */
export interface Destination {
  readonly url: URL
  readonly origin: string
  /** The path with the query. */
  readonly path: string
  /** The scope that a grant needs to call the URL. */
  readonly scope: string
  /** True if the URL's host is on the installation's list of allowed hosts. */
  readonly isListed: boolean
}

/** The size of a cache by URL. `maxEntrySize` counts characters: a longer URL is not cached, so an entry takes some 2 kB at most. */
export const URL_CACHE = { max: 2000, maxEntrySize: 500, sizeCalculation: (_value: unknown, url: string) => url.length }

/** Reads URLs and caches the result: parsing a URL takes as long as all other work of sending a request. */
export class Destinations {
  readonly #hosts: AllowedHosts
  readonly #known = new LRUCache<string, Destination>(URL_CACHE)

  constructor(hosts: AllowedHosts) {
    this.#hosts = hosts
  }

  /** Undefined for a text that is not a URL. */
  find(text: string): Destination | undefined {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const url = URL.parse(text)
    if (url === null) return undefined
    const destination = {
      url,
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      scope: grantScopeOf(url),
      isListed: this.#hosts.allowsHost(url),
    }
    this.#known.set(text, destination)
    return destination
  }
}

/** The scope for a URL. It includes a port that is not the scheme's default: a grant for one port does not cover another. */
export function grantScopeOf(url: URL): string {
  return `http:dispatch:${hostOf(url)}${url.port === '' ? '' : `:${url.port}`}`
}

/** The list of allowed hosts that lacks a host: the installation's or the tenant's. */
type HostFault = 'installation' | 'tenant'

/** The list that lacks the host; undefined if both have it. A tenant's list cannot allow more than the installation's. */
export function hostFault(destination: Destination | undefined, limits: TargetLimits): HostFault | undefined {
  if (destination === undefined || !destination.isListed) return 'installation'
  return limits.allowedHosts === null || isWithin(destination.url, limits.allowedHosts) ? undefined : 'tenant'
}

/** Everything that is wrong with a URL, as far as it shows without resolving the name. */
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
  tenant: "a host that this tenant may call (allowedHosts of the tenant's limits)",
  address: 'a public address, or one that this installation lists (CARILLON_ALLOWED_TARGETS)',
}

export function hostRefusal(fault: HostFault, destination: Destination | undefined): Outcome {
  const error = {
    code: 'host_not_allowed',
    message: `expected ${EXPECTED[fault]}, got ${hostText(destination)}; nothing was sent`,
  }
  return { kind: 'failed', error, retryable: false }
}

/** The message does not name the address: that would reveal how the network of the installation is built. */
export function addressRefusal(url: URL): Outcome {
  const error = {
    code: 'address_not_allowed',
    message: `expected the host ${url.host} to resolve to ${EXPECTED.address}, got another; nothing was sent`,
  }
  return { kind: 'failed', error, retryable: false }
}

function isWithin(url: URL, tenantHosts: readonly string[]): boolean {
  try {
    return parseTenantHosts(tenantHosts).allowsHost(url)
  } catch {
    // The list was checked when it was stored. A list that this release cannot read allows nothing.
    return false
  }
}

function urlProblem(expected: string, destination: Destination | undefined): Problem {
  return { path: 'url', message: `expected ${expected}, got ${hostText(destination)}` }
}

function hostText(destination: Destination | undefined): string {
  return destination === undefined ? 'a text that is no URL' : destination.url.host
}
