import type { HttpCall } from './http-call.ts'

/** What a flag does to a call. Answers why it cannot be done, or nothing. */
type Effect = (call: HttpCall, value: string) => string | undefined

export interface Flag {
  /** As they are written: `-X`, `--request`. */
  readonly names: readonly string[]
  readonly takesValue: boolean
  readonly effect: Effect
}

export function flag(names: string, effect: Effect): Flag {
  return { names: names.split(' '), takesValue: false, effect }
}

export function valueFlag(names: string, effect: Effect): Flag {
  return { names: names.split(' '), takesValue: true, effect }
}

/** For what changes only what is printed, or how. */
export const ignored: Effect = () => undefined

export function readHeader(call: HttpCall, text: string): string | undefined {
  const [, name, value = ''] = /^([^\s:]+):\s*(.*)$/.exec(text) ?? []
  if (name === undefined) return `expected a header such as "Accept: text/plain", got "${text}"`
  call.headers[name] = value
  return undefined
}

export function readData(call: HttpCall, text: string): string | undefined {
  if (text.startsWith('@')) return `expected data on the line itself, got the file ${text.slice(1)}`
  call.data.push(text)
  return undefined
}

export function readTimeout(call: HttpCall, text: string): string | undefined {
  const seconds = Math.ceil(Number(text))
  if (!Number.isFinite(seconds) || text === '') return `expected a number of seconds, got "${text}"`
  call.timeoutSeconds = seconds
  return undefined
}

/** Applies the words of a command to a call. Answers why it cannot be done, or nothing. */
export function applyWords(call: HttpCall, words: readonly string[], flags: readonly Flag[]): string | undefined {
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

/** `--name value`, `--name=value`, `-n value`, `-nvalue`, or several short ones in a row. */
function applyFlag(
  call: HttpCall,
  word: string,
  rest: string[],
  byName: ReadonlyMap<string, Flag>,
): string | undefined {
  const [, long, value] = /^(--[^=]+)(?:=(.*))?$/s.exec(word) ?? []
  const name = long ?? word.slice(0, 2)
  const found = byName.get(name)
  if (found === undefined) return `${name} is not understood: take it out`
  const attached = long === undefined && word.length > 2 ? word.slice(2) : value
  if (found.takesValue) {
    const given = attached ?? rest.shift()
    return given === undefined ? `expected a value after ${name}, got none` : found.effect(call, given)
  }
  const fault = found.effect(call, '')
  if (fault !== undefined || long !== undefined || attached === undefined) return fault
  return applyFlag(call, `-${attached}`, rest, byName)
}
