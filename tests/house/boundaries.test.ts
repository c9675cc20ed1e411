import { describe, expect, test } from 'vitest'

import { OUTBOUND_CALLERS } from '../../scripts/boundaries/arrows.ts'
import { checkBoundaries } from '../../scripts/boundaries/check.ts'
import type { Violation } from '../../scripts/boundaries/violation.ts'
import { readWorkspace } from '../../scripts/boundaries/workspace.ts'
import { createTree } from './fixture-tree.ts'
import { REPOSITORY } from './run-tool.ts'

const DEPENDENCIES: Readonly<Record<string, readonly string[]>> = {
  cadence: ['croner'],
  core: ['@carillon/api', '@carillon/cadence', 'pg'],
  outbound: ['@carillon/api', '@carillon/core', 'undici'],
  http: ['@carillon/api', '@carillon/core', '@carillon/outbound', 'undici'],
  api: ['@carillon/cadence', 'zod'],
  server: ['@carillon/core', '@carillon/outbound', '@carillon/http', '@carillon/api', 'fastify'],
  cli: ['@carillon/api', '@carillon/server'],
  web: ['@carillon/api', '@carillon/cadence', 'react'],
}

function folderOf(id: string): string {
  return id === 'http' ? 'modules/http' : `packages/${id}`
}

/**
 * The violations in a fixture repository: every package with a public `index.ts`, and the files under test. Left out are those that
 * every fixture has: small files, and arrows and exceptions that no file uses.
 */
async function violationsIn(files: Readonly<Record<string, string>>): Promise<string[]> {
  return (await violationsWithSmallFilesIn(files)).filter((violation) => !violation.startsWith('small-file '))
}

async function violationsWithSmallFilesIn(files: Readonly<Record<string, string>>): Promise<string[]> {
  return (await allViolationsIn(files))
    .filter(({ rule }) => rule !== 'unused-arrow' && rule !== 'unused-caller')
    .map(({ rule, file, line }) => `${rule} ${file}:${line}`)
}

/** The arrows that no file of a fixture repository uses, as the check reports them. */
async function unusedArrowsIn(files: Readonly<Record<string, string>>): Promise<string[]> {
  return (await allViolationsIn(files)).filter(({ rule }) => rule === 'unused-arrow').map(({ message }) => message)
}

async function allViolationsIn(files: Readonly<Record<string, string>>): Promise<Violation[]> {
  const manifests = Object.entries(DEPENDENCIES).map(([id, names]): [string, string] => [
    `${folderOf(id)}/package.json`,
    JSON.stringify({
      name: `@carillon/${id}`,
      exports: { '.': './src/index.ts' },
      dependencies: Object.fromEntries(names.map((name) => [name, '1.0.0'])),
    }),
  ])
  const indexes = Object.keys(DEPENDENCIES).map((id): [string, string] => [`${folderOf(id)}/src/index.ts`, 'export {}'])
  await using tree = await createTree({
    'package.json': JSON.stringify({ name: 'carillon', devDependencies: { vitest: '5.0.0' } }),
    ...Object.fromEntries(manifests),
    ...Object.fromEntries(indexes),
    ...files,
  })
  return checkBoundaries(tree.root)
}

test('this repository breaks no boundary', () => {
  expect(checkBoundaries(REPOSITORY)).toEqual([])
})

test("the check reads this repository's product, tests and scripts", () => {
  const { files } = readWorkspace(REPOSITORY)

  expect([...files.keys()]).toEqual(
    expect.arrayContaining(['packages/cadence/src/index.ts', 'scripts/check.ts', 'tests/house/boundaries.test.ts']),
  )
})

test('a file that cannot be parsed is reported', async () => {
  const violations = await violationsIn({ 'packages/core/src/broken.ts': 'export const = 1' })

  expect(violations).toEqual(['syntax packages/core/src/broken.ts:1'])
})

test.each(['utils.ts', 'store/helpers.ts', 'lib/runs.ts', 'types.ts'])(
  'a file or folder with a catch-all name is refused: %s',
  async (name) => {
    const file = `packages/core/src/${name}`

    expect(await violationsIn({ [file]: 'export {}' })).toContain(`bucket ${file}:1`)
  },
)

describe('a file of fewer than 30 lines', () => {
  const lines = (count: number): string => `export {}${'\n// a line'.repeat(count - 1)}\n`

  test('is refused if only one file imports it', async () => {
    const violations = await violationsWithSmallFilesIn({
      'packages/core/src/a.ts': `import './small.ts'\nimport './large.ts'`,
      'packages/core/src/small.ts': lines(29),
      'packages/core/src/large.ts': lines(30),
    })

    expect(violations).toEqual(['small-file packages/core/src/small.ts:1'])
  })

  test.each<[what: string, files: Readonly<Record<string, string>>]>([
    ['two files import it', { 'a.ts': `import './small.ts'`, 'b.ts': `import './small.ts'`, 'small.ts': lines(1) }],
    ['it is the clock of its package', { 'a.ts': `import './clock.ts'`, 'clock.ts': lines(1) }],
    ['it is a public file of its package', { 'a.ts': `import './index.ts'`, 'index.ts': lines(1) }],
    ['no file imports it', { 'small.ts': lines(1) }],
  ])('is allowed if %s', async (_what, files) => {
    const tree = Object.entries(files).map(([name, text]) => [`packages/core/src/${name}`, text] as const)

    expect(await violationsWithSmallFilesIn(Object.fromEntries(tree))).toEqual([])
  })

  test('counts as having one importer if all others are tests', async () => {
    const violations = await violationsWithSmallFilesIn({
      'packages/core/src/a.ts': `import './small.ts'`,
      'packages/core/src/small.test.ts': `import './small.ts'`,
      'packages/core/src/small.ts': lines(1),
    })

    expect(violations).toEqual(['small-file packages/core/src/small.ts:1'])
  })
})

describe('imports between packages', () => {
  const allowed: Readonly<Record<string, readonly string[]>> = {
    cadence: [],
    core: ['api', 'cadence'],
    outbound: ['api', 'core'],
    http: ['api', 'core', 'outbound'],
    api: ['cadence'],
    server: ['core', 'outbound', 'http', 'api'],
    cli: ['api', 'server'],
    web: ['api', 'cadence'],
  }
  const pairs = Object.keys(allowed).flatMap((from) =>
    Object.keys(allowed)
      .filter((to) => to !== from)
      .map((to) => ({ from, to, isAllowed: allowed[from]?.includes(to) === true })),
  )

  test.each(pairs.filter(({ isAllowed }) => isAllowed))('$from may import $to', async ({ from, to }) => {
    expect(await violationsIn({ [`${folderOf(from)}/src/a.ts`]: `import '@carillon/${to}'` })).toEqual([])
  })

  test.each(pairs.filter(({ isAllowed }) => !isAllowed))('$from may not import $to', async ({ from, to }) => {
    const file = `${folderOf(from)}/src/a.ts`

    expect(await violationsIn({ [file]: `import '@carillon/${to}'` })).toEqual([`package-arrow ${file}:1`])
  })

  test.each([
    ['an import of types only', `import type { Run } from '@carillon/core'`],
    ['a re-export', `export * from '@carillon/core'`],
    ['a dynamic import', 'export const core = import(`@carillon/core`)'],
    ['an import inside a type', `export type Run = import('@carillon/core').Run`],
  ])('%s counts as an import', async (_name, source) => {
    expect(await violationsIn({ 'packages/web/src/a.ts': source })).toEqual(['package-arrow packages/web/src/a.ts:1'])
  })

  test('the rules for imports hold for tests too', async () => {
    const file = 'packages/api/tests/a.test.ts'

    expect(await violationsIn({ [file]: `import '@carillon/core'` })).toEqual([`package-arrow ${file}:1`])
  })

  test('a package that the rules do not name is refused', async () => {
    const violations = await violationsIn({ 'packages/extra/package.json': '{ "name": "@carillon/extra" }' })

    expect(violations).toEqual(['package-arrow packages/extra/package.json:1'])
  })

  test('the contract imports only zod and eventsource-parser from npm, even if it declares more', async () => {
    const violations = await violationsIn({
      'packages/api/package.json':
        '{ "name": "@carillon/api", "dependencies": { "zod": "4", "eventsource-parser": "4", "pino": "9" } }',
      'packages/api/src/a.ts': `import 'zod'\nimport 'eventsource-parser'\nimport 'pino'`,
    })

    expect(violations).toEqual(['package-arrow packages/api/src/a.ts:3'])
  })
})

function roomTree(from: string, to: string): Record<string, string> {
  return {
    [`packages/core/src/${from}/a.ts`]: `import type { B } from '../${to}/b.ts'`,
    [`packages/core/src/${to}/b.ts`]: 'export interface B { id: string }',
  }
}

describe('imports between the rooms of core', () => {
  const allowed: Readonly<Record<string, readonly string[]>> = {
    kernel: [],
    db: ['kernel'],
    ports: ['kernel', 'db'],
    policy: ['kernel', 'ports'],
    ledger: ['kernel', 'db', 'ports', 'policy'],
    access: ['kernel', 'db', 'ports', 'policy', 'ledger'],
    schedules: ['kernel', 'db', 'ports', 'policy', 'ledger', 'access'],
    pipeline: ['kernel', 'db', 'ports', 'policy', 'ledger', 'access'],
  }
  const pairs = Object.keys(allowed).flatMap((from) =>
    Object.keys(allowed)
      .filter((to) => to !== from)
      .map((to) => ({ from, to, isAllowed: allowed[from]?.includes(to) === true })),
  )
  test.each(pairs.filter(({ isAllowed }) => isAllowed))('$from may import $to', async ({ from, to }) => {
    expect(await violationsIn(roomTree(from, to))).toEqual([])
  })

  test.each(pairs.filter(({ isAllowed }) => !isAllowed))('$from may not import $to', async ({ from, to }) => {
    expect(await violationsIn(roomTree(from, to))).toEqual([`room-arrow packages/core/src/${from}/a.ts:1`])
  })

  test('the facade may import every room', async () => {
    const violations = await violationsIn({
      ...roomTree('pipeline', 'ledger'),
      'packages/core/src/index.ts': `export * from './pipeline/a.ts'\nexport * from './ledger/b.ts'`,
    })

    expect(violations).toEqual([])
  })

  test('a room cannot import a higher room through the facade', async () => {
    const violations = await violationsIn({
      'packages/core/src/ledger/a.ts': `import '../scheduler.ts'`,
      'packages/core/src/scheduler.ts': `import './pipeline/b.ts'`,
      'packages/core/src/pipeline/b.ts': 'export {}',
    })

    expect(violations).toEqual(['room-arrow packages/core/src/ledger/a.ts:1'])
  })

  test.each([
    ['server', 'events', 'http'],
    ['server', 'http', 'start'],
    ['cli', 'output', 'commands'],
    ['cadence', 'time', 'slots'],
  ])('in %s, the room %s may not import %s, which is above it', async (name, from, to) => {
    const file = `packages/${name}/src/${from}/a.ts`
    const tree = { [file]: `import '../${to}/b.ts'`, [`packages/${name}/src/${to}/b.ts`]: 'export {}' }

    expect(await violationsIn(tree)).toEqual([`room-arrow ${file}:1`])
  })

  test('a folder below a room belongs to the room', async () => {
    const file = 'packages/core/src/ledger/store/a.ts'
    const tree = { [file]: `import '../../pipeline/b.ts'`, 'packages/core/src/pipeline/b.ts': 'export {}' }

    expect(await violationsIn(tree)).toEqual([`room-arrow ${file}:1`])
  })

  function storeTree(from: string): Record<string, string> {
    return {
      [`packages/core/src/${from}`]: `import '${from.includes('/') ? '../ledger' : './ledger'}/store/b.ts'`,
      'packages/core/src/ledger/store/b.ts': 'export {}',
    }
  }

  test('a room imports its own store', async () => {
    expect(await violationsIn(storeTree('ledger/a.ts'))).toEqual([])
  })

  test.each(['schedules/a.ts', 'pipeline/a.ts', 'scheduler.ts'])(
    '%s may not import the store of the ledger',
    async (file) => {
      expect(await violationsIn(storeTree(file))).toEqual([`room-store packages/core/src/${file}:1`])
    },
  )

  test('the doctor may import every store, because it only reads', async () => {
    expect(await violationsIn(storeTree('doctor/a.ts'))).toEqual([])
  })

  test.each([
    ['a constant', 'export const PART = sql`runs.id`', true],
    ['a list of columns', "export const PART = columns('runs', { id: uuid })", true],
    ['a list of columns of two tables', "export const PART = columns('runs', {}).with('grants', { id: uuid })", true],
    ['a function', 'export function part(): Sql { return sql`runs.id` }', true],
    ['a function of an alias', 'type Part = Sql<never>\nexport function part(): Part { return sql`runs.id` }', true],
    ['a function that runs a statement', 'export async function part(): Promise<string[]> { return [] }', false],
    ['a constant of another kind', 'export const PART = 50', false],
    ['a type', 'export interface part { id: string }', false],
  ])('of its store, a room may re-export no part of SQL: %s', async (_what, source, isRefused) => {
    const name = source.includes('PART') ? 'PART' : 'part'
    const violations = await violationsIn({
      'packages/core/src/ledger/runs.ts': `export { ${name} } from './store/runs.ts'`,
      'packages/core/src/ledger/store/runs.ts': `import { sql, type Sql } from '../../db/sql.ts'\n${source}`,
    })

    expect(violations).toEqual(isRefused ? ['room-sql packages/core/src/ledger/runs.ts:1'] : [])
  })

  test('a folder of core that is not a room is refused', async () => {
    const violations = await violationsIn({ 'packages/core/src/extra/a.ts': 'export {}' })

    expect(violations).toEqual(['room-arrow packages/core/src/extra/a.ts:1'])
  })
})

describe('an arrow that no file uses', () => {
  const coreToCadence = 'no file of core imports cadence: remove the arrow'
  const ledgerToPolicy = 'no file of the room ledger of core imports policy: remove the arrow'

  test('is refused', async () => {
    expect(await unusedArrowsIn({})).toEqual(expect.arrayContaining([coreToCadence, ledgerToPolicy]))
  })

  test('between packages is allowed once a file or a test imports across it', async () => {
    for (const file of ['packages/core/src/a.ts', 'packages/core/tests/a.test.ts']) {
      expect(await unusedArrowsIn({ [file]: `import '@carillon/cadence'` })).not.toContain(coreToCadence)
    }
  })

  test('between rooms is allowed once a file imports across it; a test is not enough', async () => {
    const policy = { 'packages/core/src/policy/b.ts': 'export {}' }
    const imported = `import '../policy/b.ts'`

    expect(await unusedArrowsIn({ ...policy, 'packages/core/src/ledger/a.ts': imported })).not.toContain(ledgerToPolicy)
    expect(await unusedArrowsIn({ ...policy, 'packages/core/src/ledger/a.test.ts': imported })).toContain(
      ledgerToPolicy,
    )
  })

  test('is allowed while one of its packages does not exist', async () => {
    const unused = await unusedArrowsIn({})

    expect(unused.filter((message) => message.includes('postgres'))).toEqual([])
    expect(unused).toContain('no file of server imports http: remove the arrow')
  })
})

describe('imports by name', () => {
  test("an undeclared package is refused, even if npm's hoisting would find it", async () => {
    const file = 'packages/server/src/a.ts'

    expect(await violationsIn({ [file]: `import 'undici'` })).toEqual([`undeclared-import ${file}:1`])
  })

  test('an undeclared package of this repository is refused', async () => {
    const violations = await violationsIn({
      'modules/http/package.json': '{ "name": "@carillon/http", "exports": { ".": "./src/index.ts" } }',
      'modules/http/src/a.ts': `import '@carillon/core'`,
    })

    expect(violations).toEqual(['undeclared-import modules/http/src/a.ts:1'])
  })

  test('the product may not import a development dependency of the root', async () => {
    const violations = await violationsIn({
      'packages/core/src/a.ts': `import 'vitest'`,
      'packages/core/src/a.test.ts': `import 'vitest'`,
    })

    expect(violations).toEqual(['undeclared-import packages/core/src/a.ts:1'])
  })

  test.each([
    ['by its name', '@carillon/core/src/pipeline/claim.ts'],
    ['by its path', '../../core/src/index.ts'],
  ])('the inside of another package cannot be imported %s', async (_name, specifier) => {
    const file = 'packages/server/src/a.ts'

    expect(await violationsIn({ [file]: `import '${specifier}'` })).toEqual([`private-import ${file}:1`])
  })

  test('a public subpath of another package may be imported', async () => {
    const violations = await violationsIn({
      'packages/core/package.json':
        '{ "name": "@carillon/core", "exports": { ".": "./src/index.ts", "./testing": "./src/fake-clock.ts" } }',
      'packages/core/src/fake-clock.ts': 'export {}',
      'packages/server/src/a.ts': `import '@carillon/core/testing'`,
    })

    expect(violations).toEqual([])
  })

  test('the product may not import test code', async () => {
    const violations = await violationsIn({
      'packages/core/src/a.ts': `import '../tests/factory.ts'`,
      'packages/core/tests/factory.ts': 'export {}',
    })

    expect(violations).toEqual(['test-import packages/core/src/a.ts:1'])
  })

  test.each(['cadence', 'api', 'web'])('%s runs in browsers, so it may not import from Node', async (id) => {
    const violations = await violationsIn({
      [`packages/${id}/src/a.ts`]: `import 'node:fs'\nimport 'path'`,
      [`packages/${id}/tests/a.test.ts`]: `import 'node:fs'`,
    })

    expect(violations).toEqual([`node-import packages/${id}/src/a.ts:1`, `node-import packages/${id}/src/a.ts:2`])
  })

  test('packages that run only in Node may import from it', async () => {
    expect(await violationsIn({ 'packages/core/src/a.ts': `import 'node:crypto'` })).toEqual([])
  })
})

describe('import cycles', () => {
  test('two files that import each other are refused', async () => {
    const violations = await violationsIn({
      'packages/cadence/src/a.ts': `import './b.ts'`,
      'packages/cadence/src/b.ts': `import './a.ts'`,
    })

    expect(violations).toEqual(['cycle packages/cadence/src/a.ts:1'])
  })

  test('a cycle of type imports is refused', async () => {
    const violations = await violationsIn({
      'packages/cadence/src/a.ts': `export const x = 1\nexport type { B } from './b.ts'`,
      'packages/cadence/src/b.ts': `import type { A } from './a.ts'`,
    })

    expect(violations).toEqual(['cycle packages/cadence/src/a.ts:2'])
  })

  test('a long cycle is reported once', async () => {
    const violations = await violationsIn({
      'packages/cadence/src/a.ts': `import './b.ts'`,
      'packages/cadence/src/b.ts': `import './c.ts'`,
      'packages/cadence/src/c.ts': `import './a.ts'`,
      'packages/cadence/src/outside.ts': `import './a.ts'`,
    })

    expect(violations).toEqual(['cycle packages/cadence/src/a.ts:1'])
  })

  test("a cycle through the package's own public name is refused", async () => {
    const violations = await violationsIn({
      'packages/cadence/src/index.ts': `import './a.ts'`,
      'packages/cadence/src/a.ts': `import '@carillon/cadence'`,
    })

    expect(violations).toEqual(['cycle packages/cadence/src/a.ts:1'])
  })

  test('two paths to the same file are not a cycle', async () => {
    const violations = await violationsIn({
      'packages/cadence/src/a.ts': `import './b.ts'\nimport './c.ts'`,
      'packages/cadence/src/b.ts': `import './d.ts'`,
      'packages/cadence/src/c.ts': `import './d.ts'`,
      'packages/cadence/src/d.ts': 'export {}',
    })

    expect(violations).toEqual([])
  })
})

describe('the SQL rule', () => {
  const statements = [
    "'select id from runs'",
    '`\n  select id from ${schema}.runs where id = $1`',
    "'SELECT now()'",
    "'insert into runs (id) values ($1)'",
    "'update runs set state = $1'",
    '`update ${schema}.run as run\nset state = $1`',
    "'DELETE FROM runs'",
    '`with due as (select 1) select * from due`',
    '`-- the agenda\nselect id from runs`',
    "'select ' + columns + ' from runs'",
    "'create unique index on runs (id)'",
    "'alter table runs add column x int'",
    "'set local role api'",
    "'begin'",
    "'COMMIT;'",
    "'listen agenda'",
  ]

  test.each(statements)('a statement outside store/ is refused: %s', async (statement) => {
    const file = 'packages/core/src/pipeline/a.ts'

    expect(await violationsIn({ [file]: `export const text = ${statement}` })).toEqual([`sql ${file}:1`])
  })

  test.each(statements)('the same statement inside store/ is allowed: %s', async (statement) => {
    expect(await violationsIn({ 'packages/core/src/ledger/store/a.ts': `export const text = ${statement}` })).toEqual(
      [],
    )
  })

  test.each([
    "'Select a day from the list'",
    "'update available'",
    "'created'",
    "'set the timezone'",
    "'with care'",
    "'begin at nine'",
    "'deletes from the ledger are refused'",
  ])('a sentence is not taken for SQL: %s', async (sentence) => {
    expect(await violationsIn({ 'packages/core/src/pipeline/a.ts': `export const text = ${sentence}` })).toEqual([])
  })

  test('pg is imported only in store/ and db/', async () => {
    const violations = await violationsIn({
      'packages/core/src/pipeline/a.ts': `import 'pg'`,
      'packages/core/src/pipeline/store/a.ts': `import 'pg'`,
      'packages/core/src/db/a.ts': `import 'pg'`,
    })

    expect(violations).toEqual(['sql packages/core/src/pipeline/a.ts:1'])
  })

  test.each([
    ['the tag', (path: string) => `import { sql } from '${path}'`],
    ['a type', (path: string) => `import type { Statement } from '${path}'`],
  ])('db/sql.ts is imported only in store/ and db/, %s too', async (_what, importOf) => {
    const violations = await violationsIn({
      'packages/core/src/pipeline/a.ts': importOf('../db/sql.ts'),
      'packages/core/src/scheduler.ts': importOf('./db/sql.ts'),
      'packages/core/src/pipeline/store/a.ts': importOf('../../db/sql.ts'),
      'packages/core/src/db/a.ts': importOf('./sql.ts'),
      'packages/core/src/db/sql.ts': 'export {}',
    })

    expect(violations.toSorted()).toEqual([
      'sql packages/core/src/pipeline/a.ts:1',
      'sql packages/core/src/scheduler.ts:1',
    ])
  })

  test('tests may contain SQL', async () => {
    expect(await violationsIn({ 'packages/core/tests/a.test.ts': `export const q = 'select 1 from runs'` })).toEqual([])
  })
})

describe('the clock rule', () => {
  // Source texts that the rule must find. Nothing here waits.
  const reads = [
    'Date.now()',
    "Date['now']()",
    'new Date()',
    'new Date',
    'new Date(...parts)',
    'Date()',
    'globalThis.Date.now()',
    'performance.now()',
    'setTimeout(ring, 5)',
    'setInterval(ring, 5)',
    'globalThis.setTimeout(ring, 5)',
    '{ setTimeout }',
    '[Date]',
    'Temporal.Now.instant()',
    'T.Now.instant()',
    'process.hrtime.bigint()',
    'AbortSignal.timeout(5)',
    '(() => { const { now } = Date; return now() })()',
    '(() => { const { Now } = Temporal; return Now.instant() })()',
  ]

  test.each(reads)('reading the clock outside clock.ts is refused: %s', async (read) => {
    const file = 'packages/core/src/pipeline/a.ts'

    expect(await violationsIn({ [file]: `export const x = (${read})` })).toContain(`clock ${file}:1`)
  })

  test.each(reads)('reading the clock in clock.ts is allowed: %s', async (read) => {
    expect(await violationsIn({ 'packages/core/src/clock.ts': `export const x = (${read})` })).toEqual([])
  })

  test.each(reads)('cadence may not read the clock, not even in clock.ts: %s', async (read) => {
    const file = 'packages/cadence/src/clock.ts'

    expect(await violationsIn({ [file]: `export const x = (${read})` })).toContain(`clock ${file}:1`)
  })

  test.each(['node:timers', 'node:timers/promises', 'node:perf_hooks', 'timers/promises'])(
    'importing timers with %s is refused',
    async (specifier) => {
      const file = 'packages/core/src/pipeline/a.ts'

      expect(await violationsIn({ [file]: `import '${specifier}'` })).toEqual([`clock ${file}:1`])
    },
  )

  test.each([
    'new Date(0)',
    'new Date(given)',
    'Date.UTC(2026, 0)',
    "Date.parse('2026-01-01')",
    'given instanceof Date',
    'clock.now()',
    'clock.setTimeout(ring)',
    '{ setTimeout: ring }',
    'class { setTimeout() {} }',
    "Temporal.Instant.from('2026-01-01T00:00Z')",
    'given as Date',
  ])('using a time that was passed in is allowed: %s', async (use) => {
    expect(await violationsIn({ 'packages/core/src/pipeline/a.ts': `export const x = (${use})` })).toEqual([])
  })

  test('the rule also covers product code outside src', async () => {
    const file = 'packages/core/extra/a.ts'

    expect(await violationsIn({ [file]: 'Date.now()' })).toEqual([`clock ${file}:1`])
  })

  test('tests and benches may read the clock', async () => {
    const violations = await violationsIn({
      'packages/cadence/bench/bench.ts': 'performance.now()',
      'packages/cadence/src/a.test.ts': 'Date.now()',
    })

    expect(violations).toEqual([])
  })
})

describe('the rule for calling out', () => {
  const file = 'modules/http/src/a.ts'

  // Source texts that the rule must find. Nothing here is called.
  const calls = [
    "import { request } from 'undici'",
    "import { Agent } from 'undici'",
    "import undici from 'undici'",
    "import { request } from 'node:http'",
    "import { get as load } from 'https'",
    "import { Agent, type Server } from 'node:http'",
    "import http from 'node:http'",
    "import * as http from 'node:http'",
    "import { connect } from 'node:net'",
    "import { Socket } from 'node:net'",
    "import { connect } from 'node:tls'",
    "import { connect } from 'node:http2'",
    "import { createSocket } from 'node:dgram'",
    "export { request } from 'node:http'",
    "export * from 'node:http'",
    "export const http = await import('node:http')",
    "export const answer = await fetch('https://a.example/')",
    'export const load = options.fetch ?? fetch',
    "export const answer = await globalThis.fetch('https://a.example/')",
    "export const answer = await globalThis['fetch']('https://a.example/')",
    'export const { fetch: load } = { fetch }',
    "export const socket = new WebSocket('wss://a.example/')",
    "export const events = new EventSource('https://a.example/')",
  ]

  test.each(calls)('what can call any address is refused: %s', async (source) => {
    expect(await violationsIn({ [file]: source })).toEqual([`outbound ${file}:1`])
  })

  test.each(calls)('the same is allowed in packages/outbound: %s', async (source) => {
    expect(await violationsIn({ 'packages/outbound/src/a.ts': source })).toEqual([])
  })

  test.each(['packages/core/tests/a.test.ts', 'packages/core/src/a.test.ts', 'packages/cadence/bench/bench.ts'])(
    'tests and benches may call out: %s',
    async (path) => {
      expect(await violationsIn({ [path]: "import { request } from 'node:http'\nawait fetch(URL)" })).toEqual([])
    },
  )

  test.each([
    "import { createServer, STATUS_CODES, type IncomingMessage } from 'node:http'",
    "import type { Agent } from 'node:http'",
    "import { createServer, isIP, type Socket } from 'node:net'",
    "import type { Dispatcher } from 'undici'",
    "export type { Agent } from 'node:http'",
    "import { lookup } from 'node:dns'",
    'export const answer = await options.fetch(1)',
    'export const source = { fetch: (page: number) => page }',
    'export interface Options { fetch?: typeof fetch }',
    'export class Keys { fetch() {} }',
  ])('what opens no connection is allowed: %s', async (source) => {
    expect(await violationsIn({ [file]: source })).toEqual([])
  })

  test('a file on the list of exceptions may call out', async () => {
    const violations = await violationsIn({
      'packages/server/src/auth/fetch-json.ts': 'export const load = () => fetch(URL)',
      'packages/server/src/auth/other.ts': 'export const load = () => fetch(URL)',
    })

    expect(violations).toEqual(['outbound packages/server/src/auth/other.ts:1'])
  })

  test('an exception whose file calls nothing is refused', async () => {
    const unused = async (files: Readonly<Record<string, string>>): Promise<string[]> =>
      (await allViolationsIn(files)).filter(({ rule }) => rule === 'unused-caller').map(({ message }) => message)
    const path = 'packages/server/src/auth/fetch-json.ts'
    const message = `${path} calls nothing: remove it from OUTBOUND_CALLERS`

    expect(await unused({})).toContain(message)
    expect(await unused({ [path]: 'export {}' })).toContain(message)
    expect(await unused({ [path]: 'export const load = () => fetch(URL)' })).not.toContain(message)
  })

  test('every exception has its reason', () => {
    expect(Object.values(OUTBOUND_CALLERS).filter((reason) => reason.split(' ').length < 5)).toEqual([])
  })
})
