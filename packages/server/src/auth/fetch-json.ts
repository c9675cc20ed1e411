import type { Clock } from '@carillon/core'

interface BoundedRequest {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

interface Bounds {
  /** Covers the whole exchange, from the first byte sent to the last one read. */
  readonly timeoutMs: number
  readonly maxBytes: number
  readonly clock: Pick<Clock, 'after'>
}

/**
 * Fetches JSON from an external server that is trusted but may be broken. Throws unless the server answers with status 200.
 * Redirects are not followed, because a redirect could hand the decision about access to another host.
 *
 * The thrown errors quote neither the request nor the answer, because both may hold credentials.
 */
export async function fetchJson(request: BoundedRequest, { timeoutMs, maxBytes, clock }: Bounds): Promise<unknown> {
  const { url, ...init } = request
  const controller = new AbortController()
  const cancel = clock.after(timeoutMs, () => {
    controller.abort(new Error(`expected an answer within ${timeoutMs} ms, got none`))
  })
  try {
    const response = await fetch(url, { ...init, redirect: 'manual', signal: controller.signal })
    if (response.status !== 200) {
      await response.body?.cancel()
      throw new Error(`expected an answer with status 200, got ${response.status}`)
    }
    return parse(await readText(response, maxBytes))
  } finally {
    cancel()
  }
}

async function readText({ body }: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  // Node's type does not say what a body yields; by the Fetch standard it yields bytes. Throwing out of the loop closes the connection.
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength
    if (bytes > maxBytes) throw new Error(`expected an answer of at most ${maxBytes} bytes, got more`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new Error('expected an answer in JSON, got something else')
  }
}
