import type { AllowedHosts } from './allowed-hosts.ts'
import { hostOf } from './host-pattern.ts'
import { RecentTexts } from './recent-texts.ts'

/** Where a URL leads. Nothing of it changes while a process runs. */
export interface Destination {
  readonly url: URL
  readonly origin: string
  /** With the query. */
  readonly path: string
  /** What a grant must carry to call it. */
  readonly scope: string
  /** Whether the installation's list holds its host. */
  readonly isListed: boolean
}

// Some 2 kB each at most.
const KEPT = { count: 2000, textMaxLength: 500 }

/** Reads where URLs lead, and remembers it: to read one takes as long as all that is written to its connection. */
export class Destinations {
  readonly #hosts: AllowedHosts
  readonly #known = new RecentTexts<Destination>(KEPT)

  constructor(hosts: AllowedHosts) {
    this.#hosts = hosts
  }

  /** Undefined for what is no URL. */
  find(text: string): Destination | undefined {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const url = URL.parse(text)
    if (url === null) return undefined
    const destination = {
      url,
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      scope: scopeOf(url),
      isListed: this.#hosts.allowsHost(url),
    }
    this.#known.set(text, destination)
    return destination
  }
}

/** The host with its port, unless that is the scheme's own: a right to call one port is none to call another. */
export function scopeOf(url: URL): string {
  return `http:dispatch:${hostOf(url)}${url.port === '' ? '' : `:${url.port}`}`
}
