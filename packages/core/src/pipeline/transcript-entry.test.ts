import { JSON_DEPTH_MAX, TRANSCRIPT_ENTRY_MAX_BYTES } from '@carillon/api'
import { describe, expect, test } from 'vitest'

import { entryText, ownEntryText } from './transcript-entry.ts'

function stored(entry: unknown): Record<string, unknown> {
  return JSON.parse(entryText(entry)) as Record<string, unknown>
}

test('an entry is stored as JSON with all its fields, without those that have no value', () => {
  const entry = { kind: 'tool', name: 'search', input: { q: 'é', pages: [1, 2.5, null, true] }, error: undefined }

  expect(entryText(entry)).toBe('{"kind":"tool","name":"search","input":{"q":"é","pages":[1,2.5,null,true]}}')
})

test('an entry is stored as it was when it was recorded, and a field named __proto__ is a field', () => {
  const entry = JSON.parse('{"kind":"text","__proto__":{"x":1}}') as object

  expect(entryText(entry)).toBe('{"kind":"text","__proto__":{"x":1}}')
})

test('U+0000 and lone surrogates, which Postgres cannot read back, become U+FFFD in texts and in names of fields', () => {
  expect(stored({ kind: 'te\0xt', 'na\0me': 'a\0b \uD800 c' })).toEqual({
    kind: 'te\uFFFDxt',
    'na\uFFFDme': 'a\uFFFDb \uFFFD c',
  })
})

describe('something that is no entry becomes a line of kind refused that says why', () => {
  const cyclic: Record<string, unknown> = { kind: 'text' }
  cyclic['self'] = cyclic
  let deep: unknown = 1
  for (let level = 0; level <= JSON_DEPTH_MAX; level += 1) deep = [deep]
  const throwing = {
    kind: 'text',
    get value(): string {
      throw new Error('a getter\0 of the target')
    },
  }
  const { proxy, revoke } = Proxy.revocable({ kind: 'text' }, {})
  revoke()

  test.each<[what: string, entry: unknown, message: string]>([
    ['nothing', undefined, 'expected an entry with a kind, got nothing'],
    ['a text', 'hello', 'expected an entry with a kind, got "hello"'],
    ['an object without a kind', { text: 'x' }, 'kind: expected a text of 1 to 100 characters, got nothing'],
    ['an empty kind', { kind: '' }, 'kind: expected a text of 1 to 100 characters, got ""'],
    ['a kind that only Carillon writes', { kind: 'truncated' }, 'kind: expected another kind, because Carillon itself'],
    ['a cycle', cyclic, `expected at most ${JSON_DEPTH_MAX} levels of lists and objects, got more`],
    ['more levels than are stored', { kind: 'text', deep }, `expected at most ${JSON_DEPTH_MAX} levels`],
    ['a bigint', { kind: 'text', n: 1n }, 'expected plain JSON, got a bigint'],
    ['a function', { kind: 'text', f: () => 1 }, 'expected plain JSON, got a function'],
    ['a number that JSON cannot hold', { kind: 'text', n: Number.NaN }, 'expected plain JSON, got NaN'],
    ['an object of a class', { kind: 'text', at: new Date(0) }, 'expected plain JSON, got an object'],
    ['a getter that throws', throwing, 'a getter\uFFFD of the target'],
    ['an object that cannot be read', proxy, ''],
  ])('%s', (_what, entry, message) => {
    const line = stored(entry)

    expect(line['kind']).toBe('refused')
    expect(line['message']).toContain(message)
  })
})

describe('an entry that is longer than 32 kB is cut, and says so', () => {
  test('a long text is cut, and the fields around it stay', () => {
    const line = stored({ kind: 'tool_result', output: 'x'.repeat(1_000_000), isError: false })

    expect(line).toMatchObject({ kind: 'tool_result', isError: false, cut: true })
    expect((line['output'] as string).length).toBeGreaterThan(TRANSCRIPT_ENTRY_MAX_BYTES / 3)
  })

  test('the kind stays even if it comes last', () => {
    expect(stored({ list: Array.from({ length: 100_000 }, () => 1), kind: 'text' })).toMatchObject({
      kind: 'text',
      cut: true,
    })
  })

  test.each<[what: string, entry: object]>([
    ['a text of characters that JSON escapes', { kind: 'text', text: '\u0001'.repeat(100_000) }],
    ['a text of characters of three bytes', { kind: 'text', text: '\u20AC'.repeat(100_000) }],
    ['many short texts', { kind: 'text', list: Array.from({ length: 100_000 }, (_, n) => `item ${n}`) }],
    ['many fields', Object.fromEntries([['kind', 'text'], ...Array.from({ length: 50_000 }, (_, n) => [`f${n}`, n])])],
    ['a long name of a field', { kind: 'text', ['n'.repeat(100_000)]: 1 }],
    ['one list in a million places', { kind: 'text', lists: nested(20) }],
    ['a kind of characters that JSON escapes', { kind: '\u0001'.repeat(100), text: '\u0001'.repeat(100_000) }],
  ])('%s', (_what, entry) => {
    const text = entryText(entry)

    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(TRANSCRIPT_ENTRY_MAX_BYTES)
    expect(JSON.parse(text)).toMatchObject({ cut: true })
  })

  test('an entry of just less than the limit is stored whole', () => {
    expect(stored({ kind: 'text', text: 'x'.repeat(32_000) })).toEqual({ kind: 'text', text: 'x'.repeat(32_000) })
  })
})

test('a line that Carillon writes has its kind, its message and its own fields', () => {
  expect(ownEntryText('dropped', 'lines are missing here', { lines: 2 })).toBe(
    '{"kind":"dropped","message":"lines are missing here","lines":2}',
  )
})

/** A list of two times the same list, and so on: 2^levels values of a few objects. */
function nested(levels: number): unknown {
  let list: unknown = ['x']
  for (let level = 0; level < levels; level += 1) list = [list, list]
  return list
}
