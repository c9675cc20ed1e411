import { foundName, type FieldProblem } from '@carillon/api'

/** More than any cadence or target needs, and fewer than any reader of JSON stumbles over. */
const DEPTH_MAX = 100

interface Place {
  readonly value: object
  readonly path: readonly string[]
}

/**
 * What no body may hold, wherever it is: `__proto__`, which gets lost or does harm wherever an object is copied, and more
 * levels than can be read back. Undefined if all is well. Walks without recursion: the depth is what it is about.
 */
export function jsonFault(body: unknown): FieldProblem | undefined {
  const places: Place[] = isBranch(body) ? [{ value: body, path: [] }] : []
  for (let place = places.pop(); place !== undefined; place = places.pop()) {
    const { value, path } = place
    if (path.length > DEPTH_MAX) {
      return { field: path[0] ?? '', message: `expected at most ${DEPTH_MAX} levels of lists and objects, got more` }
    }
    for (const [key, below] of Object.entries(value)) {
      if (key === '__proto__') {
        const field = [...path, key].join('.')
        return { field, message: 'expected no such field, got "__proto__": give it another name' }
      }
      if (isBranch(below)) places.push({ value: below, path: [...path, foundName(key)] })
    }
  }
  return undefined
}

function isBranch(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
