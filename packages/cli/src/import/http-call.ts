import type { ScheduleInput } from '@carillon/api'

/** What the flags of curl or wget come to. */
export interface HttpCall {
  readonly urls: string[]
  readonly headers: Record<string, string>
  readonly data: string[]
  readonly notes: string[]
  method?: string
  timeoutSeconds?: number
  maxAttempts?: number
}

export type Translated =
  | { readonly ok: true; readonly content: Pick<ScheduleInput, 'target' | 'policy'>; readonly notes: readonly string[] }
  | { readonly ok: false; readonly reason: string }

export function emptyCall(): HttpCall {
  return { urls: [], headers: {}, data: [], notes: [] }
}

/** The call as a target. */
export function translateCall(call: HttpCall, program: string): Translated {
  const { urls, headers, data, method, timeoutSeconds, maxAttempts, notes } = call
  const [url, ...others] = urls
  if (url === undefined || others.length > 0) {
    return { ok: false, reason: `expected ${program} with one URL, got ${urls.length}` }
  }
  const body = readBody(data)
  if (body === undefined) {
    return {
      ok: false,
      reason: `expected JSON as the data of ${program}, got ${data.join('&')}: a schedule sends JSON`,
    }
  }
  const target = {
    kind: 'http',
    url: /^[a-z]+:\/\//i.test(url) ? url : `http://${url}`,
    method: method ?? (data.length > 0 ? 'POST' : 'GET'),
    ...(Object.keys(headers).length > 0 ? { headers } : {}),
    ...body,
    ...(timeoutSeconds === undefined ? {} : { timeoutSeconds }),
  }
  const policy = maxAttempts === undefined ? {} : { policy: { retry: { maxAttempts } } }
  return { ok: true, content: { target, ...policy }, notes }
}

/** Nothing if there is none, undefined if it is no JSON. */
function readBody(data: readonly string[]): { readonly payload?: unknown } | undefined {
  if (data.length === 0) return {}
  try {
    return { payload: JSON.parse(data.join('&')) }
  } catch {
    return undefined
  }
}
