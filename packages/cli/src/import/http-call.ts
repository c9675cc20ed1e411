import type { ScheduleInput } from '@carillon/api'

/** The HTTP request that the flags of curl or wget describe. */
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

/** Applies a flag to a call. Returns the reason if that is not possible. */
type Effect = (call: HttpCall, value: string) => string | undefined

/** A flag of curl or wget. */
export interface Flag {
  /** All spellings: `-X`, `--request`. */
  readonly names: readonly string[]
  readonly takesValue: boolean
  readonly effect: Effect
}

/** Reads the words after `curl` or `wget` as an HTTP target. */
export function translateCall(program: string, words: readonly string[], flags: readonly Flag[]): Translated {
  const call: HttpCall = { urls: [], headers: {}, data: [], notes: [] }
  const fault = applyWords(call, words, flags)
  return fault === undefined ? toTarget(call, program) : { ok: false, reason: `${program}: ${fault}` }
}

function applyWords(call: HttpCall, words: readonly string[], flags: readonly Flag[]): string | undefined {
  const byName = new Map(flags.flatMap((each) => each.names.map((name) => [name, each])))
  const rest = [...words]
  let hasEnded = false
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    if (!hasEnded && word === '--') hasEnded = true
    else if (hasEnded || !/^-./.test(word)) call.urls.push(word)
    else {
      const fault = applyFlag(call, word, rest, byName)
      if (fault !== undefined) return fault
    }
  }
  return undefined
}

/** Reads `--name value`, `--name=value`, `-n value`, `-nvalue`, or several short flags in one word. */
function applyFlag(
  call: HttpCall,
  word: string,
  rest: string[],
  byName: ReadonlyMap<string, Flag>,
): string | undefined {
  const [, long, value] = /^(--[^=]+)(?:=(.*))?$/s.exec(word) ?? []
  const name = long ?? word.slice(0, 2)
  const found = byName.get(name)
  if (found === undefined) return `expected flags that a schedule can express, got ${name}: remove it`
  const attached = long === undefined && word.length > 2 ? word.slice(2) : value
  if (found.takesValue) {
    const given = attached ?? rest.shift()
    return given === undefined ? `expected a value after ${name}, got none` : found.effect(call, given)
  }
  const fault = found.effect(call, '')
  if (fault !== undefined || long !== undefined || attached === undefined) return fault
  return applyFlag(call, `-${attached}`, rest, byName)
}

function toTarget(call: HttpCall, program: string): Translated {
  const { urls, headers, data, method, timeoutSeconds, maxAttempts, notes } = call
  const [url, ...others] = urls
  if (url === undefined || others.length > 0) {
    return { ok: false, reason: `expected ${program} with one URL, got ${urls.length}` }
  }
  const body = readBody(data)
  if (body === undefined) {
    return { ok: false, reason: `expected JSON as the data of ${program}, got ${data.join('&')}` }
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

/** An object without a payload if there are no data; undefined if the data are not JSON. */
function readBody(data: readonly string[]): { readonly payload?: unknown } | undefined {
  if (data.length === 0) return {}
  try {
    return { payload: JSON.parse(data.join('&')) }
  } catch {
    return undefined
  }
}
