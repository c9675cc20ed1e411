import { ApiError } from '@carillon/api'
import { expect, test } from 'vitest'

import { batchesOf, refusedEntries } from './entry-batches.ts'
import type { ImportEntry } from './import-entry.ts'

function entryOf(name: string, payload = ''): ImportEntry {
  const cadence = { kind: 'cron' as const, expression: '@daily' }
  const input = { name, cadence, target: { kind: 'http' as const, url: 'http://a', payload } }
  return { place: name, input, pausedReason: null, skippedSlots: [] }
}

const FILE = Array.from({ length: 1200 }, (_, index) => entryOf(`s${index}`))

function namesOf(batches: readonly (readonly ImportEntry[])[]): string[][] {
  return batches.map((batch) => batch.map(({ input }) => input.name))
}

test('the boundaries of batches depend on the file only, not on the entries that are left to import', () => {
  const all = batchesOf(FILE, FILE)
  const rest = batchesOf(FILE.slice(500), FILE)

  expect(all.map(({ length }) => length)).toEqual([500, 500, 200])
  expect(namesOf(rest)).toEqual(namesOf(all.slice(1)))
})

test('no batch exceeds the size limit of a request, and an entry that exceeds it alone gets a batch of its own', () => {
  const large = ['a', 'b', 'c', 'd'].map((name) => entryOf(name, 'x'.repeat(400_000)))
  const huge = entryOf('huge', 'x'.repeat(1_000_000))

  expect(namesOf(batchesOf([...large, huge], [...large, huge]))).toEqual([['a', 'b'], ['c', 'd'], ['huge']])
})

test('a refused entry is found by its index in the problem, and no entry if the problem has no index', () => {
  const refusal = (...fields: string[]): ApiError =>
    new ApiError(
      {
        code: 'invalid_input',
        status: 400,
        detail: 'wrong',
        errors: fields.map((field) => ({ field, message: 'wrong' })),
      },
      null,
    )

  expect([
    ...refusedEntries(FILE, refusal('schedules[3].name', 'schedules[3]', 'schedules[11].cadence.expression')),
  ]).toEqual([FILE[3], FILE[11]])
  expect([...refusedEntries(FILE, refusal('schedules', 'x[1]', 'schedules[5000].name'))]).toEqual([])
})
