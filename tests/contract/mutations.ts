import fc from 'fast-check'

/** Values that often break services. */
const NASTY: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1e308,
  0.1,
  Number.MAX_SAFE_INTEGER,
  '',
  ' ',
  '\0',
  '\uD800',
  '\u202E',
  'x'.repeat(10_000),
  '9'.repeat(400),
  '2026-13-45T99:99:99Z',
  '0000-01-01T00:00:00Z',
  '+275760-09-13T00:00:00Z',
  '* * * * *',
  '*/0 * * * *',
  'FREQ=SECONDLY',
  'P1Y2M10DT2H30M',
  'PT0S',
  'http://169.254.169.254/latest',
  'javascript:alert(1)',
  "'; drop table carillon.schedules; --",
  '__proto__',
  [],
  {},
  [[[[[[]]]]]],
  { kind: 'cron' },
  { kind: 'http', url: 'http://127.0.0.1/' },
  { toString: 'x', constructor: 'y', valueOf: null },
]

const KEYS = ['name', 'cadence', 'target', 'policy', 'kind', 'toString', 'constructor', '', '\0', 'a.b', '0']

const nasty = fc.oneof(fc.constantFrom(...NASTY), fc.jsonValue({ maxDepth: 3 }))

/** Any JSON, or a value close to `valid`: one to three of its fields are replaced, removed or added. */
export function mutated(valid: unknown): fc.Arbitrary<unknown> {
  const change = fc.record({
    place: fc.nat(),
    what: fc.constantFrom('replace', 'remove', 'add'),
    key: fc.constantFrom(...KEYS),
    value: nasty,
  })
  const near = fc.array(change, { minLength: 1, maxLength: 3 }).map((changes) =>
    changes.reduce((value, { place, what, key, value: other }) => {
      const copy = structuredClone(value)
      const places = objectsIn(copy)
      const holder = places[place % Math.max(places.length, 1)]
      if (holder === undefined) return other
      const keys = Object.keys(holder)
      const name = what === 'add' || keys.length === 0 ? key : (keys[place % keys.length] ?? key)
      if (what === 'remove') delete holder[name]
      else Object.defineProperty(holder, name, { value: other, enumerable: true, configurable: true, writable: true })
      return copy
    }, valid),
  )
  return fc.oneof({ weight: 4, arbitrary: near }, { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 5 }) })
}

/** Every object in a value, including the value itself. */
function objectsIn(value: unknown): Record<string, unknown>[] {
  if (typeof value !== 'object' || value === null) return []
  const inner = Object.values(value).flatMap(objectsIn)
  return Array.isArray(value) ? inner : [value as Record<string, unknown>, ...inner]
}

/** Any text for a path, a query or a header. */
export const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 50 }),
  fc.constantFrom(
    ...NASTY.filter((value) => typeof value === 'string'),
    '%00',
    '..',
    '%2e%2e',
    '1e3',
    '0x10',
    '٣',
    '50 ',
  ),
)
