import { createHash } from 'node:crypto'

import { invalidInput } from '../errors.ts'
import { requireJson } from './schedule-input.ts'

/**
 * What was asked for, and by whom, as SHA-256: the same whatever the order of keys.
 * @throws CarillonError if the input cannot be kept as JSON
 */
export function requestHash(subject: string, input: unknown): Buffer {
  requireJson(input)
  return createHash('sha256')
    .update(canonicalJson([subject, input]))
    .digest()
}

/** The same of several requests that are one, in their order; no request by itself has the same. */
export function batchHash(hashes: readonly Buffer[]): Buffer {
  const hash = createHash('sha256').update('batch')
  for (const each of hashes) hash.update(each)
  return hash.digest()
}

function canonicalJson(value: unknown): string {
  try {
    return JSON.stringify(value, withSortedKeys)
  } catch (error) {
    // To sort takes a little more of the stack than to write, which was tried before.
    if (!(error instanceof RangeError)) throw error
    throw invalidInput([{ path: '', message: 'expected plain JSON, got what is nested too deeply: flatten it' }])
  }
}

function withSortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}
