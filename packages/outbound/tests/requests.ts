import type { OutboundEnd, OutboundRequest } from '@carillon/core'

import { GuardedClient, type GuardedClientOptions } from '../src/index.ts'

/** The client under test. It may call loopback unless the test says otherwise. */
export function openClient(options: Partial<GuardedClientOptions> = {}): GuardedClient {
  return new GuardedClient({ allowedHosts: ['127.0.0.1'], ...options })
}

/** A POST without headers and body, of a tenant without a list of its own. */
export function requestTo(url: string, fields: Partial<OutboundRequest> = {}): OutboundRequest {
  return {
    url,
    method: 'POST',
    headers: [],
    body: null,
    allowedHosts: null,
    readBytes: 65_536,
    keptBytes: 4096,
    ...fields,
  }
}

/** Sends a request that is never aborted. */
export function sendTo(
  client: GuardedClient,
  url: string,
  fields: Partial<OutboundRequest> = {},
): Promise<OutboundEnd> {
  return client.send(requestTo(url, fields), new AbortController().signal)
}
