import type { OutboundClient, OutboundEnd, OutboundRefusal, OutboundRequest } from '@carillon/core'
import { Agent } from 'undici'

import { Destinations, hostFault, hostRefusal, urlRefusal } from './destinations.ts'
import { exchange } from './exchange.ts'
import { guardedConnector, resolveBySystem, type Resolve } from './guard/connector.ts'
import { parseAllowedHosts, type AllowedHosts } from './guard/hosts.ts'

const CONNECTIONS_DEFAULT = 64

export interface GuardedClientOptions {
  /**
   * The hosts that the installation may call: `127.0.0.1`, `localhost`, `*.internal.example.com`, `digest.internal:8443`,
   * `[::1]`, `*`. An empty list allows none.
   *
   * Every address behind a host must be public, or be listed here by itself or in a network: `10.0.0.0/8`, `fd00::/8`. So
   * `*` is every public host, and no name can lead to loopback, a private network or cloud metadata that is not listed.
   */
  readonly allowedHosts: readonly string[]
  /** The most connections to one origin. Further requests wait for a free one, and their signals end the wait. @default 64 */
  readonly connections?: number
  /** Finds all addresses of a name. @default the resolver of this machine */
  readonly resolve?: Resolve
}

/** The implementation of the port. One for all modules of a process, so that they share its connections. */
export class GuardedClient implements OutboundClient, AsyncDisposable {
  readonly #hosts: AllowedHosts
  readonly #destinations: Destinations
  readonly #agent: Agent

  /** @throws RangeError naming the entry of the list, or the option, that cannot be read */
  constructor({ allowedHosts, connections = CONNECTIONS_DEFAULT, resolve = resolveBySystem }: GuardedClientOptions) {
    if (!Number.isSafeInteger(connections) || connections < 1) {
      throw new RangeError(`expected \`connections\` to be a whole number of at least 1, got ${connections}`)
    }
    this.#hosts = parseAllowedHosts(allowedHosts)
    this.#destinations = new Destinations(this.#hosts)
    this.#agent = createAgent(this.#hosts, connections, resolve)
  }

  refusalOf(url: string, allowedHosts: readonly string[] | null): OutboundRefusal | undefined {
    return urlRefusal(this.#destinations.find(url), this.#hosts, allowedHosts)
  }

  send(request: OutboundRequest, signal: AbortSignal): Promise<OutboundEnd> {
    const destination = this.#destinations.find(request.url)
    // Checked at every call: since the URL was stored, its host may have been removed from one of the lists.
    const fault = hostFault(destination, request.allowedHosts)
    if (destination === undefined || fault !== undefined) {
      return Promise.resolve({ kind: 'refused', refusal: hostRefusal(fault ?? 'installation', destination) })
    }
    return exchange(this.#agent, destination, request, signal)
  }

  /** Ends what is under way as `broken`, and closes all connections. Called by the code that created the client, not by its users. */
  close(): Promise<void> {
    // Not the agent's `close`, which would wait for requests that their callers have already given up.
    return this.#agent.destroy()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

/**
 * The agent neither follows redirects nor retries. Only its signal ends a request: undici's own timeouts could end one whose
 * time limit has not passed. Each connection carries one HTTP/1.1 request at a time, so a broken one fails one request only.
 */
function createAgent({ allowsAddress }: AllowedHosts, connections: number, resolve: Resolve): Agent {
  return new Agent({
    connections,
    pipelining: 1,
    allowH2: false,
    connect: guardedConnector({ allowsAddress, resolve }),
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}
