import { expectedText, foundText, isStorable as isStorableText, JSON_DEPTH_MAX } from '@carillon/api'
import type { Json } from '@carillon/core'

/** One problem below a field of a spec. */
export interface Fault {
  /** The path below the field, such as `[0, 'name']`; empty for the field itself. */
  readonly path: readonly (string | number)[]
  readonly message: string
}

/**
 * The first reason why Postgres could not store a value as JSON and return it unchanged; undefined if there is none. Safe for any
 * value: depth and size are limited, and a cyclic value exceeds the depth.
 */
export function jsonFault(value: unknown, maxBytes: number): Fault | undefined {
  const path: (string | number)[] = []
  // A lower bound of the size, counted during the walk. So a value that is far too large is rejected without serializing it.
  let bytes = 0

  function visit(node: unknown): Fault | undefined {
    bytes += typeof node === 'string' ? node.length + 2 : 1
    if (bytes > maxBytes) return tooLarge(maxBytes)
    if (path.length > JSON_DEPTH_MAX) return tooDeep()
    if (typeof node !== 'object' || node === null) return here(scalarFault(node))
    if (Array.isArray(node)) return firstFault(node.keys(), (index) => visitBelow(index, node[index]))
    if (!isPlain(node)) return here('expected plain JSON, got an object of a class')
    return firstFault(Object.keys(node), (key) => {
      bytes += key.length + 3
      return here(textFault(key)) ?? visitBelow(key, (node as Record<string, unknown>)[key])
    })
  }

  function visitBelow(step: string | number, node: unknown): Fault | undefined {
    path.push(step)
    const fault = visit(node)
    path.pop()
    return fault
  }

  function here(message: string | undefined): Fault | undefined {
    return message === undefined ? undefined : { path: [...path], message }
  }

  const fault = visit(value)
  if (fault !== undefined) return fault
  return Buffer.byteLength(JSON.stringify(value)) > maxBytes ? tooLarge(maxBytes) : undefined
}

/** True if Postgres can store a value that was parsed from JSON and return it unchanged. Does not check the size. */
export function isStorableJson(node: Json, depth = 0): boolean {
  if (depth > JSON_DEPTH_MAX) return false
  if (typeof node !== 'object' || node === null) return scalarFault(node) === undefined
  if (isList(node)) return node.every((item) => isStorableJson(item, depth + 1))
  return Object.entries(node).every(([key, item]) => textFault(key) === undefined && isStorableJson(item, depth + 1))
}

function isList(node: object): node is readonly Json[] {
  return Array.isArray(node)
}

function scalarFault(node: unknown): string | undefined {
  switch (typeof node) {
    case 'string':
      return textFault(node)
    case 'number':
      return numberFault(node)
    case 'boolean':
      return undefined
    default:
      return node === null ? undefined : expectedText('a JSON value', node)
  }
}

function numberFault(node: number): string | undefined {
  if (!Number.isFinite(node)) return `expected a number that JSON can hold, got ${node}`
  // The caller may have written another number: 2^53 + 1 is parsed as 2^53.
  if (Number.isSafeInteger(node) || !Number.isInteger(node)) return undefined
  return `expected a whole number within ±(2^53 - 1), or a text, got ${node}`
}

function textFault(text: string): string | undefined {
  // A json column of Postgres stores both characters as escapes, but the functions of Postgres cannot read such a document.
  if (isStorableText(text)) return undefined
  return `expected a text without U+0000 and lone surrogates, got ${foundText(text)}`
}

/* These two are faults of the value as a whole. */
function tooDeep(): Fault {
  return { path: [], message: `expected at most ${JSON_DEPTH_MAX} levels of lists and objects, got more` }
}

function tooLarge(maxBytes: number): Fault {
  return { path: [], message: `expected at most ${maxBytes} bytes of JSON, got more` }
}

function isPlain(node: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(node)
  return prototype === Object.prototype || prototype === null
}

function firstFault<Item>(items: Iterable<Item>, faultOf: (item: Item) => Fault | undefined): Fault | undefined {
  for (const item of items) {
    const fault = faultOf(item)
    if (fault !== undefined) return fault
  }
  return undefined
}
