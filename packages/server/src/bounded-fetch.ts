import type { Clock } from '@carillon/core'

interface BoundedRequest {
  readonly url: string
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

interface Bounds {
  /** From the first byte sent to the last one read. */
  readonly timeoutMs: number
  readonly maxBytes: number
  readonly clock: Pick<Clock, 'after'>
}

/**
 * The JSON that a service which is trusted, but may be broken, answers with status 200. Redirects are not followed: whoever
 * can make one could otherwise choose who answers. Connections are kept and used again.
 *
 * Throws for everything else. What it throws quotes neither the request nor the answer, for they hold credentials.
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
  // Node's type of a body says nothing of its parts; the standard says bytes. Leaving the loop lets go of the connection, so
  // hardly more is read than is kept.
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
