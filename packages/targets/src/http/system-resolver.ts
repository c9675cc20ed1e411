import { ADDRCONFIG } from 'node:dns'
import { lookup } from 'node:dns/promises'

export interface ResolvedAddress {
  readonly address: string
  /** 4 or 6. */
  readonly family: number
}

/** Every address of a name, not only the one that would be called. Rejects if there is none. */
export type Resolve = (hostname: string) => Promise<readonly ResolvedAddress[]>

/** As this machine resolves names, its hosts file included; only of the families that it has addresses of. */
export const resolveBySystem: Resolve = (hostname) => lookup(hostname, { all: true, hints: ADDRCONFIG })
