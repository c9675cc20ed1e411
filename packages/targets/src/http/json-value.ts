import type { Json } from '@carillon/core'

import { found, type Fault } from './fault.ts'

const DEPTH_MAX = 100

/**
 * The first reason why a value would not come back the same from JSON in Postgres, undefined if it would. Safe for any
 * value: neither its depth nor its size is known beforehand, and a circle is only a great depth.
 */
export function jsonFault(value: unknown, maxBytes: number): Fault | undefined {
  const path: (string | number)[] = []
  // A lower bound while walking, so that what is far too large is not written out only to be measured.
  let bytes = 0

  function visit(node: unknown): Fault | undefined {
    bytes += typeof node === 'string' ? node.length + 2 : 1
    if (bytes > maxBytes) return tooLarge(maxBytes)
    if (path.length > DEPTH_MAX) return tooDeep()
    if (typeof node !== 'object' || node === null) return here(scalarFault(node))
    if (Array.isArray(node)) return firstFault(node.keys(), (index) => visitBelow(index, node[index]))
    if (!isPlain(node)) return here('Expected plain JSON, but found an object of a class.')
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

/** Whether a value that was read from JSON would come back the same from JSON in Postgres, whatever its size. */
export function isStorable(node: Json, depth = 0): boolean {
  if (depth > DEPTH_MAX) return false
  if (typeof node !== 'object' || node === null) return scalarFault(node) === undefined
  if (isList(node)) return node.every((item) => isStorable(item, depth + 1))
  return Object.entries(node).every(([key, item]) => textFault(key) === undefined && isStorable(item, depth + 1))
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
      return node === null ? undefined : `Expected what JSON can hold, but found ${found(node)}.`
  }
}

function numberFault(node: number): string | undefined {
  if (!Number.isFinite(node)) return `Expected a number that JSON can hold, but found ${node}.`
  // It may have been another number before it was read: 2^53 + 1 arrives as 2^53.
  if (Number.isSafeInteger(node) || !Number.isInteger(node)) return undefined
  return `Expected a whole number within ±(2^53 - 1), or a text, but found ${node}.`
}

function textFault(text: string): string | undefined {
  // Postgres keeps both as escapes in a json column, but none of its functions reads a document that holds one.
  if (text.isWellFormed() && !text.includes('\0')) return undefined
  return `Expected a text without U+0000 and lone surrogates, but found ${found(text)}.`
}

/** Both of the value as a whole: no one part is to blame. */
function tooDeep(): Fault {
  return { path: [], message: `Expected at most ${DEPTH_MAX} levels of lists and objects, but found more.` }
}

function tooLarge(maxBytes: number): Fault {
  return { path: [], message: `Expected at most ${maxBytes} bytes of JSON, but found more.` }
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
