import { InvalidArgumentError } from 'commander'

import { DURATION_EXPECTED, readDurationMs, readIsoDuration } from './duration-text.ts'

/** Readers of option values. What they refuse is a usage error that names the option. */

export function wholeNumber(text: string): number {
  if (/^\d{1,12}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('expected a whole number')
}

export function durationMs(text: string): number {
  const ms = readDurationMs(text)
  if (ms !== undefined) return ms
  throw new InvalidArgumentError(DURATION_EXPECTED)
}

/** For what the service counts in whole seconds. */
export function durationSeconds(text: string): number {
  const seconds = durationMs(text) / 1000
  if (Number.isInteger(seconds)) return seconds
  throw new InvalidArgumentError('expected whole seconds')
}

export function isoDuration(text: string): string {
  const duration = readIsoDuration(text)
  if (duration !== undefined) return duration
  throw new InvalidArgumentError(DURATION_EXPECTED)
}

/** A date and time as people write it, with a space between. The service decides what it means. */
export function moment(text: string): string {
  return text.trim().replace(/^(\d{4}-\d\d-\d\d) +(?=\d)/, '$1T')
}

export function json(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new InvalidArgumentError(`expected JSON: ${reason}`)
  }
}

export type Headers = Readonly<Record<string, string>>

/** Collects `name: value` over the repeated option. */
export function header(text: string, collected: Headers = {}): Headers {
  const [, name, value = ''] = /^([^\s:]+)\s*:\s*(.*?)\s*$/.exec(text) ?? []
  if (name === undefined) throw new InvalidArgumentError('expected a header such as "Accept: text/plain"')
  return { ...collected, [name]: value }
}

/** Collects texts over the repeated option. */
export function collected(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text]
}

/** `http, graph` and the like. */
export function list(text: string): readonly string[] {
  const items = text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
  if (items.length > 0) return items
  throw new InvalidArgumentError('expected a list such as http,graph')
}
