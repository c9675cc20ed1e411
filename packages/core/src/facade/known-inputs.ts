import { parse, type Cadence } from '@carillon/cadence'
import { LRUCache } from 'lru-cache'

import { resolvePolicy, type PolicyDefaults, type PolicyResult } from '../policy/schedule-policy.ts'

// Some 2 kB each.
const CADENCES_MAX = 5000
const POLICIES_MAX = 1000
/** What is longer, or nested deeper, is a rarity that nobody writes twice. */
const TEXT_MAX_LENGTH = 2000
const DEPTH_MAX = 5

/**
 * What was accepted before, remembered by its JSON: most schedules of a project share a few cadences and policies, and to read
 * a cadence takes longer than all the other checks. What is refused is read anew, so that its message is about itself.
 */
export class KnownInputs {
  readonly #cadences = new LRUCache<string, Cadence>({ max: CADENCES_MAX })
  readonly #policies = new LRUCache<string, PolicyResult>({ max: POLICIES_MAX })

  /** Undefined for what is refused, and for what depends on when it is read: a cadence that begins now. */
  cadence(input: unknown, minimumSeconds: number): Cadence | undefined {
    const text = plainJson(input)
    if (text === undefined) return undefined
    const key = `${minimumSeconds} ${text}`
    const known = this.#cadences.get(key)
    if (known !== undefined) return known
    // Without an instant: what is accepted so means the same at any other.
    const result = parse(JSON.parse(text), { minimumSeconds })
    if (!result.ok) return undefined
    this.#cadences.set(key, result.cadence)
    return result.cadence
  }

  policy(input: unknown, defaults: PolicyDefaults): PolicyResult {
    const text = input === undefined ? '' : plainJson(input)
    if (text === undefined) return resolvePolicy(input, defaults)
    const key = `${JSON.stringify(defaults)} ${text}`
    const known = this.#policies.get(key)
    if (known !== undefined) return known
    const result = resolvePolicy(text === '' ? undefined : JSON.parse(text), defaults)
    if (result.ok) this.#policies.set(key, result)
    return result
  }
}

/** A value as JSON; undefined if something of it would be lost or changed on the way, so that two values were one text. */
function plainJson(value: unknown): string | undefined {
  if (!isPlain(value, DEPTH_MAX)) return undefined
  const text = JSON.stringify(value)
  return text.length > TEXT_MAX_LENGTH ? undefined : text
}

function isPlain(value: unknown, depth: number): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true
  if (typeof value === 'number') return Number.isFinite(value) && !Object.is(value, -0)
  if (typeof value !== 'object' || depth === 0) return false
  if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype) return false
  return Object.values(value).every((part) => isPlain(part, depth - 1))
}
