import type { OutboundRefusal } from '@carillon/core'
import { LRUCache } from 'lru-cache'

import { addressOf, parseTenantHosts, portOf, type AllowedHosts } from './guard/hosts.ts'

/** What the client knows about a URL. It can be cached, because it does not change while the process runs. */
export interface Destination {
  readonly url: URL
  readonly origin: string
  /** The path with the query. */
  readonly path: string
  /** True if the URL's host is on the installation's list of allowed hosts. */
  readonly isListed: boolean
}

/** The size of a cache by URL. `maxEntrySize` counts characters: a longer URL is not cached, so an entry takes some 2 kB at most. */
export const URL_CACHE = { max: 2000, maxEntrySize: 500, sizeCalculation: (_value: unknown, url: string) => url.length }

const HTTP = /^https?:$/

/** Reads URLs and caches the result: parsing a URL takes as long as all other work of sending a request. */
export class Destinations {
  readonly #hosts: AllowedHosts
  readonly #known = new LRUCache<string, Destination>(URL_CACHE)

  constructor(hosts: AllowedHosts) {
    this.#hosts = hosts
  }

  /** Undefined for a text that is no URL of HTTP. */
  find(text: string): Destination | undefined {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const url = URL.parse(text)
    if (url === null || !HTTP.test(url.protocol)) return undefined
    const destination = {
      url,
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      isListed: this.#hosts.allowsHost(url),
    }
    this.#known.set(text, destination)
    return destination
  }
}

/** The list of allowed hosts that lacks a host: the installation's or the tenant's. */
type HostFault = 'installation' | 'tenant'

/** The list that lacks the host; undefined if both have it. A tenant's list cannot allow more than the installation's. */
export function hostFault(
  destination: Destination | undefined,
  tenantHosts: readonly string[] | null,
): HostFault | undefined {
  if (destination === undefined || !destination.isListed) return 'installation'
  return tenantHosts === null || isWithin(destination.url, tenantHosts) ? undefined : 'tenant'
}

const EXPECTED = {
  installation: 'a host that this installation may call (CARILLON_ALLOWED_TARGETS)',
  tenant: "a host that this tenant may call (allowedHosts of the tenant's limits)",
  address: 'a public address, or one that this installation lists (CARILLON_ALLOWED_TARGETS)',
}

export function hostRefusal(fault: HostFault, destination: Destination | undefined): OutboundRefusal {
  return { code: 'host_not_allowed', message: `expected ${EXPECTED[fault]}, got ${hostText(destination)}` }
}

/** The message does not name the address: that would reveal how the network of the installation is built. */
export function addressRefusal(url: URL): OutboundRefusal {
  return {
    code: 'address_not_allowed',
    message: `expected the host ${url.host} to resolve to ${EXPECTED.address}, got another`,
  }
}

/** What speaks against a URL, as far as it shows without resolving the name. */
export function urlRefusal(
  destination: Destination | undefined,
  hosts: AllowedHosts,
  tenantHosts: readonly string[] | null,
): OutboundRefusal | undefined {
  const fault = hostFault(destination, tenantHosts)
  if (destination === undefined || fault !== undefined) return hostRefusal(fault ?? 'installation', destination)
  const address = addressOf(destination.url)
  if (address === undefined || hosts.allowsAddress(address.toString(), portOf(destination.url))) return undefined
  return { code: 'address_not_allowed', message: `expected ${EXPECTED.address}, got ${hostText(destination)}` }
}

function isWithin(url: URL, tenantHosts: readonly string[]): boolean {
  try {
    return parseTenantHosts(tenantHosts).allowsHost(url)
  } catch {
    // The list was checked when it was stored. A list that this release cannot read allows nothing.
    return false
  }
}

function hostText(destination: Destination | undefined): string {
  return destination === undefined ? 'a text that is no HTTP URL' : destination.url.host
}
