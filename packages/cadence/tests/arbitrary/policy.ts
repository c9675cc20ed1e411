import fc from 'fast-check'

import type { Policy } from '../oracle/dst.ts'

export function policy(): fc.Arbitrary<Policy> {
  return fc.record({ gap: fc.constantFrom('shift', 'skip'), fold: fc.constantFrom('first', 'second', 'both') })
}

/** The `dst` field: absent, one of its fields, or both. */
export function partialPolicy(): fc.Arbitrary<Partial<Policy>> {
  return fc.oneof(
    fc.constant({}),
    policy(),
    policy().map(({ gap }) => ({ gap })),
    policy().map(({ fold }) => ({ fold })),
  )
}
