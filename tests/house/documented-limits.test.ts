import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import {
  AUTO_PAUSE_THRESHOLD,
  BACKOFF_SECONDS,
  CREATE_MANY_MAX,
  HTTP_HEADERS,
  HTTP_METHODS,
  HTTP_PAYLOAD_MAX_BYTES,
  HTTP_RETRY,
  HTTP_TIMEOUT_SECONDS,
  JSON_DEPTH_MAX,
  MISSED_POLICIES,
  OVERLAP_DEFAULT,
  OVERLAP_POLICIES,
  RETENTION_DAYS,
  RETRY_ATTEMPTS,
  SPREAD_SECONDS,
  STARTING_DEADLINE_SECONDS,
  URL_MAX_LENGTH,
} from '@carillon/api'
import { apiRole, workerRole } from '@carillon/core'
import { expect, test } from 'vitest'

import { REPOSITORY } from './run-tool.ts'

/** The rows of the tables of a page, by the text of their first cell. */
function rowsOf(page: string): ReadonlyMap<string, readonly string[]> {
  const lines = readFileSync(join(REPOSITORY, page), 'utf8').split('\n')
  const rows = lines
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
  return new Map(rows.map(([first = '', ...rest]) => [first, rest]))
}

const range = ({ min, max }: { readonly min: number; readonly max: number }): string => `${min}..${max}`
const codeOf = (words: readonly string[], separator: string): string =>
  words.map((word) => `\`${word}\``).join(separator)
const grouped = (value: number): string => value.toLocaleString('en-US')

const RETRY = '`retry.maxAttempts`, `baseSeconds`, `capSeconds`'
const { maxAttempts, baseSeconds, capSeconds } = HTTP_RETRY

test.each<[field: string, values: string, byDefault: string]>([
  ['`overlap`', codeOf(OVERLAP_POLICIES, ', '), codeOf([OVERLAP_DEFAULT], '')],
  ['`missed`', codeOf(MISSED_POLICIES, ', '), '`skip`; `run_once` for a `once` cadence'],
  ['`startingDeadlineSeconds`', range(STARTING_DEADLINE_SECONDS), `${STARTING_DEADLINE_SECONDS.default}:`],
  [
    RETRY,
    [RETRY_ATTEMPTS, BACKOFF_SECONDS, BACKOFF_SECONDS].map(range).join(', '),
    `the target's; for http ${maxAttempts}, ${baseSeconds} and ${capSeconds}`,
  ],
  ['`autoPauseThreshold`', `0, ${range(AUTO_PAUSE_THRESHOLD)}`, `${AUTO_PAUSE_THRESHOLD.default} failed runs`],
  ['`spreadSeconds`', range(SPREAD_SECONDS), `${SPREAD_SECONDS.default};`],
])('the README of core states the range and the default of %s', (field, values, byDefault) => {
  const [statedValues, statedDefault = ''] = rowsOf('packages/core/README.md').get(field) ?? []

  expect(statedValues).toBe(values)
  expect(statedDefault.slice(0, byDefault.length)).toBe(byDefault)
})

test('the README of core states how many schedules createMany accepts', () => {
  expect(rowsOf('packages/core/README.md').get('`createMany(caller, inputs)`')?.[0]).toContain(
    `1 to ${grouped(CREATE_MANY_MAX)} in one`,
  )
})

test.each<[field: string, byDefault: string]>([
  ['`overlap`', codeOf([OVERLAP_DEFAULT], '')],
  ['`startingDeadlineSeconds`', String(STARTING_DEADLINE_SECONDS.default)],
  ['`autoPauseThreshold`', String(AUTO_PAUSE_THRESHOLD.default)],
  ['`spreadSeconds`', String(SPREAD_SECONDS.default)],
])('the guide to schedules states the default of %s', (field, byDefault) => {
  expect(rowsOf('docs/guides/schedules.md').get(field)?.[0]).toBe(byDefault)
})

test.each<[field: string, limits: readonly string[]]>([
  ['`url`', [`${grouped(URL_MAX_LENGTH)} characters`]],
  ['`method`', [codeOf(HTTP_METHODS, ' ')]],
  ['`headers`', [`at most ${HTTP_HEADERS.maxCount},`, `${grouped(HTTP_HEADERS.totalMaxLength)} characters in all`]],
  ['`payload`', [`${HTTP_PAYLOAD_MAX_BYTES / 1024} kB`, `${JSON_DEPTH_MAX} levels`]],
  [
    '`timeoutSeconds`',
    [`${HTTP_TIMEOUT_SECONDS.min} to ${HTTP_TIMEOUT_SECONDS.max}, ${HTTP_TIMEOUT_SECONDS.default} if absent`],
  ],
])('the README of http states the limits of %s', (field, limits) => {
  const [stated = ''] = rowsOf('modules/http/README.md').get(field) ?? []

  expect(limits.filter((limit) => !stated.includes(limit))).toEqual([])
})

test.each(['docs/guides/production.md', 'packages/server/README.md'])('%s lists every setting of a service', (page) => {
  const source = readFileSync(join(REPOSITORY, 'packages/server/src/start/settings.ts'), 'utf8')
  const variables = [...source.matchAll(/variable: '(\w+)'/g)].map(([, variable]) => `\`${variable}\``)
  const listed = rowsOf(page)

  expect(variables).toContain('`CARILLON_SCHEMA`')
  expect(variables.filter((variable) => !listed.has(variable))).toEqual([])
})

test.each(['docs/guides/production.md', 'packages/server/README.md'])(
  '%s states the retention of the ledger',
  (page) => {
    const [byDefault = '', what = ''] = rowsOf(page).get('`CARILLON_RETENTION_DAYS`') ?? []

    expect(byDefault.replaceAll('`', '')).toBe(String(RETENTION_DAYS.default))
    expect(what).toContain(`${RETENTION_DAYS.min} to ${RETENTION_DAYS.max}`)
  },
)

test('the guarantees and the guide to schedules state the retention of the ledger', () => {
  const textOf = (page: string): string => readFileSync(join(REPOSITORY, page), 'utf8')

  expect(textOf('docs/guarantees.md')).toContain(
    `${RETENTION_DAYS.default} days by default, and ${RETENTION_DAYS.min} to ${RETENTION_DAYS.max} (\`CARILLON_RETENTION_DAYS\`)`,
  )
  expect(textOf('docs/guides/schedules.md')).toContain(`for the retention, ${RETENTION_DAYS.default} days by default`)
})

test('the guide to production names the roles, as they are for a schema of another name', () => {
  const guide = readFileSync(join(REPOSITORY, 'docs/guides/production.md'), 'utf8')
  const [roles] = rowsOf('docs/guides/production.md').get('roles') ?? []

  expect(roles).toBe(`\`${apiRole('second')}\`, \`${workerRole('second')}\``)
  expect(guide).toContain(`grant ${apiRole('second')}, ${workerRole('second')} to <owner>`)
})
