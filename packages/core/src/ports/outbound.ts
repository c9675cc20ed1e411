import type { HttpMethod } from '@carillon/api'

/** A request to an address that a tenant can choose. */
export interface OutboundRequest {
  readonly url: string
  readonly method: HttpMethod
  /** Name, value, name, value and so on. They are sent as they are. */
  readonly headers: readonly string[]
  readonly body: string | Uint8Array | null
  /** The host patterns of the tenant, which narrow those of the installation. Null: only the installation's apply. */
  readonly allowedHosts: readonly string[] | null
  /** A body up to this size is read to its end, so its connection can be reused. For a longer body the connection is closed. */
  readonly readBytes: number
  /** The most bytes of a body that are kept. The bytes after them are read and dropped. */
  readonly keptBytes: number
}

export interface OutboundAnswer {
  readonly status: number
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** The first bytes of the body. */
  readonly body: Buffer
  /** True if the other side sent more of the body than is kept, or may have. */
  readonly isCut: boolean
}

/** Why a URL may not be called. A retry would not help. */
export interface OutboundRefusal {
  /**
   * `host_not_allowed`: the host is missing from the list of the installation or of the tenant. `address_not_allowed`: one of its
   * addresses is neither public nor listed.
   */
  readonly code: 'host_not_allowed' | 'address_not_allowed'
  /** Says what was expected, and names the host but none of its addresses. */
  readonly message: string
}

/** How a request ended. A value, not an exception. */
export type OutboundEnd =
  | { readonly kind: 'answered'; readonly answer: OutboundAnswer }
  /** The connection failed: its name, TCP, TLS or HTTP. `answer` is set if its status had arrived already; its body is incomplete. */
  | { readonly kind: 'broken'; readonly error: Error; readonly answer: OutboundAnswer | undefined }
  /** The signal fired before the exchange ended. */
  | { readonly kind: 'aborted' }
  /** Nothing was sent, because the URL may not be called. */
  | { readonly kind: 'refused'; readonly refusal: OutboundRefusal }
  /** Nothing was sent, because the request is no valid HTTP: a line break in a header, for example. */
  | { readonly kind: 'malformed'; readonly message: string }

/**
 * Calls addresses that tenants choose. Every module that calls such an address does so by this client: the installation has one, which all
 * modules share. It is implemented by `@carillon/outbound`.
 *
 * Each call checks the host against both lists, and each connection every address that the host's name resolves to. Only a checked address
 * is connected to. Redirects are not followed, and nothing is retried or sent twice. Requests to one origin share a limited number of
 * connections; those beyond it wait for a free one.
 */
export interface OutboundClient {
  /**
   * Why a URL may not be called, as far as it shows without resolving its name; undefined if nothing speaks against it. For a create or an
   * edit: `send` checks again.
   */
  refusalOf(url: string, allowedHosts: readonly string[] | null): OutboundRefusal | undefined
  /**
   * Sends a request once.
   *
   * @param signal ends it at once, also while it waits for a connection. It is the only time limit of an exchange on an open connection.
   */
  send(request: OutboundRequest, signal: AbortSignal): Promise<OutboundEnd>
}
