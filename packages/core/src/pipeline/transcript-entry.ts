import {
  expectedText,
  JSON_DEPTH_MAX,
  messageOf,
  TRANSCRIPT_ENTRY_MAX_BYTES,
  TRANSCRIPT_KIND_MAX_LENGTH,
  TRANSCRIPT_OWN_KINDS,
  type TranscriptOwnKind,
} from '@carillon/api'

import type { Json } from '../kernel/json.ts'

/** The marker of an entry that was cut: `"cut":true`. */
const CUT = { cut: true }
/** What an entry that was cut needs besides its copy: its kind, of characters that take six bytes each, and the marker. */
const RESERVED_BYTES = TRANSCRIPT_KIND_MAX_LENGTH * 6 + 64

/**
 * The JSON text of an entry, as the transcript stores it. Never throws: a target may be plain JavaScript. Something that JSON cannot hold
 * becomes a line of kind `refused` that says why. An entry that is too long is cut. U+0000 and lone surrogates, which Postgres cannot read
 * back, become U+FFFD. The work is bounded, whatever the size of the entry.
 */
export function entryText(entry: unknown): string {
  try {
    const kind = kindOf(entry)
    const whole = new BoundedCopy(1)
    const copy = whole.copy(entry)
    return JSON.stringify(whole.isCut ? cutCopy(entry, kind) : copy)
  } catch (error) {
    return ownEntryText('refused', whyRefused(error))
  }
}

/** The text of a line that Carillon itself writes. */
export function ownEntryText(
  kind: TranscriptOwnKind,
  message: string,
  more: Readonly<Record<string, Json>> = {},
): string {
  return JSON.stringify({ kind, message, ...more })
}

function kindOf(entry: unknown): string {
  if (typeof entry !== 'object' || entry === null) throw new TypeError(expectedText('an entry with a kind', entry))
  const { kind } = entry as { readonly kind?: unknown }
  if (typeof kind !== 'string' || kind === '' || kind.length > TRANSCRIPT_KIND_MAX_LENGTH) {
    throw new TypeError(`kind: ${expectedText(`a text of 1 to ${TRANSCRIPT_KIND_MAX_LENGTH} characters`, kind)}`)
  }
  if ((TRANSCRIPT_OWN_KINDS as readonly string[]).includes(kind)) {
    throw new TypeError(`kind: ${expectedText('another kind, because Carillon itself writes this one', kind)}`)
  }
  return kind
}

/** A text gets at most half of the room that is left, so that a long one leaves room for the fields after it. */
function cutCopy(entry: unknown, kind: string): object {
  return { kind: clean(kind), ...(new BoundedCopy(0.5).copy(entry) as object), ...CUT }
}

/** The message may come from a getter of the target. */
function whyRefused(error: unknown): string {
  try {
    return clean(messageOf(error).slice(0, 1000))
  } catch {
    return 'expected an entry, got an object that cannot be read'
  }
}

/** Copies a value into at most the bytes of one entry. */
class BoundedCopy {
  /** True if something was left out. */
  isCut = false
  readonly #textShare: number
  #left = TRANSCRIPT_ENTRY_MAX_BYTES - RESERVED_BYTES

  /** @param textShare how much of the room that is left one text may take */
  constructor(textShare: number) {
    this.#textShare = textShare
  }

  /** @throws TypeError for anything that JSON cannot hold */
  copy(node: unknown, depth = 0): Json {
    if (depth > JSON_DEPTH_MAX) {
      throw new TypeError(`expected at most ${JSON_DEPTH_MAX} levels of lists and objects, got more`)
    }
    if (typeof node === 'string') return this.#text(node)
    if (node === null || typeof node === 'boolean' || (typeof node === 'number' && Number.isFinite(node))) {
      this.#left -= String(node).length + 1
      return node
    }
    if (Array.isArray(node)) return this.#list(node, depth)
    if (typeof node === 'object' && isJsonObject(node)) return this.#object(node, depth)
    throw new TypeError(expectedText('plain JSON', node))
  }

  #text(text: string): string {
    const room = Math.max(0, this.#left * this.#textShare)
    // Each character takes a byte at least, and six if JSON escapes it.
    let kept = clean(text.slice(0, room))
    for (let bytes = bytesOf(kept); bytes > room && kept !== ''; bytes = bytesOf(kept)) {
      kept = clean(kept.slice(0, Math.floor((kept.length * room) / bytes)))
    }
    if (kept.length < text.length) this.isCut = true
    this.#left -= bytesOf(kept) + 1
    return kept
  }

  #list(list: readonly unknown[], depth: number): Json[] {
    const copy: Json[] = []
    this.#left -= 3
    for (const item of list) {
      if (!this.#hasRoom()) break
      copy.push(this.copy(item, depth + 1))
    }
    return copy
  }

  /** Fields without a value are left out, as JSON does. `fromEntries`, because an assignment to `__proto__` would make no field. */
  #object(object: object, depth: number): Json {
    const fields: [string, Json][] = []
    this.#left -= 3
    for (const name of Object.keys(object)) {
      const value = (object as Readonly<Record<string, unknown>>)[name]
      if (value === undefined) continue
      if (!this.#hasRoom(name.length)) break
      fields.push([this.#text(name), this.copy(value, depth + 1)])
    }
    return Object.fromEntries(fields)
  }

  #hasRoom(wanted = 0): boolean {
    if (this.#left > wanted) return true
    this.isCut = true
    return false
  }
}

function clean(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\uFFFD')
}

function bytesOf(text: string): number {
  return Buffer.byteLength(JSON.stringify(text))
}

function isJsonObject(node: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(node)
  return prototype === Object.prototype || prototype === null
}
