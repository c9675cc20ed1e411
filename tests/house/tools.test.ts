import { readFileSync } from 'node:fs'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'

import { createTree, type FixtureTree } from './fixture-tree.ts'
import { REPOSITORY, runTool } from './run-tool.ts'

const SWITCH = `export function ring(bell: 'a' | 'b'): void {
  switch (bell) {
    case 'a':
      break
  }
}`

/** A small repository with this one's settings and npm packages. */
async function createHouse(files: Readonly<Record<string, string>>): Promise<FixtureTree> {
  const settings = [
    '.oxfmtrc.json',
    '.oxlintrc.json',
    'knip.json',
    'tsconfig.base.json',
    'packages/cadence/tsconfig.json',
    'packages/cadence/tsconfig.src.json',
    'packages/cadence/tsconfig.tests.json',
  ]
  const copies = settings.map((path): [string, string] => [path, readFileSync(join(REPOSITORY, path), 'utf8')])
  const tree = await createTree({
    'package.json': '{ "name": "carillon", "type": "module", "workspaces": ["packages/*"] }\n',
    'packages/cadence/package.json':
      '{ "name": "@carillon/cadence", "type": "module", "exports": { ".": "./src/index.ts" } }\n',
    'packages/cadence/src/index.ts': 'export const bell = 1\n',
    'packages/cadence/tests/bell.test.ts': 'process.exitCode = 0\n',
    ...Object.fromEntries(copies),
    ...files,
  })
  await symlink(join(REPOSITORY, 'node_modules'), join(tree.root, 'node_modules'))
  return tree
}

async function lint(path: string, source: string): Promise<string> {
  await using house = await createHouse({ [path]: source })
  const { stdout } = await runTool(house.root, 'oxlint', ['--format', 'unix', path])
  return stdout
}

describe('the linter', () => {
  test('accepts clean code', async () => {
    expect(await lint('packages/cadence/src/ring.ts', 'export const ring = (): string => "ding"\n')).toBe('')
  })

  test.each([
    ['a floating promise', 'no-floating-promises', 'const f = async () => {}\nexport const g = () => { f() }'],
    ['a promise where none is awaited', 'no-misused-promises', '[1].forEach(async () => {})\nexport {}'],
    ['any', 'no-explicit-any', 'export const f = (x: any) => { void x }'],
    ['a value of type any', 'no-unsafe-assignment', 'export const x: string = JSON.parse("1")'],
    ['a switch that forgets a case', 'switch-exhaustiveness-check', SWITCH],
    ['console', 'no-console', 'console.log(1)\nexport {}'],
    ['a default export', 'no-default-export', 'export default 1'],
    ['a directive that silences nothing', 'Unused', '// oxlint-disable-next-line no-console\nexport const x = 1'],
  ])('reports %s as an error', async (_name, rule, source) => {
    expect(await lint('packages/cadence/src/ring.ts', source)).toContain(rule)
  })

  test('reports floating promises in tests too', async () => {
    const source = 'const f = async () => {}\nexport const g = () => { f() }'

    expect(await lint('packages/cadence/tests/ring.test.ts', source)).toContain('no-floating-promises')
  })

  test('allows the command line to write to the console', async () => {
    expect(await lint('packages/cli/src/output.ts', 'console.log(1)\nexport {}')).not.toContain('no-console')
  })

  test.each([
    ['packages/core/src/nextSlot.ts', false],
    ['packages/core/src/NextSlot.ts', false],
    ['packages/core/src/next_slot.ts', false],
    ['packages/core/src/next-slot.ts', true],
    ['packages/core/src/next-slot.test.ts', true],
    ['packages/web/src/SlotList.tsx', true],
    ['packages/web/src/SlotList.ts', false],
  ])('requires kebab-case file names, and PascalCase for React components: %s', async (path, isGood) => {
    expect((await lint(path, 'export {}')).includes('filename-case')).toBe(!isGood)
  })
})

async function checkTypes(files: Readonly<Record<string, string>>): Promise<string> {
  await using house = await createHouse(files)
  const { stdout } = await runTool(house.root, 'tsc', ['--build', 'packages/cadence'])
  return stdout
}

describe('the type check', () => {
  test('accepts clean code', async () => {
    expect(await checkTypes({})).toBe('')
  })

  test.each([
    ['Node', 'process.version'],
    ['the browser', 'document.title'],
    ['timers', 'setTimeout'],
  ])('does not let the sources of cadence use %s', async (_name, expression) => {
    const source = `export const x = ${expression}\n`

    expect(await checkTypes({ 'packages/cadence/src/index.ts': source })).toMatch(/src\/index\.ts.*Cannot find name/)
  })

  test('lets a test beside its subject use Node, but not the subject', async () => {
    const errors = await checkTypes({
      'packages/cadence/src/index.ts': 'export const x = process.version\n',
      'packages/cadence/src/index.test.ts': `import { x } from './index.ts'\nprocess.title = x\n`,
    })

    expect(errors).toMatch(/src\/index\.ts/)
    expect(errors).not.toMatch(/index\.test\.ts/)
  })

  test.each([
    ['an unchecked index', 'export const x: number = [1][0]'],
    ['undefined for an absent property', 'export const x: { a?: 1 } = { a: undefined }'],
    ['syntax that cannot be erased', 'export enum Bell { Ring }'],
    ['a type imported as a value', `import { T } from './t.ts'\nexport type U = T`],
    ['an import without its extension', `export * from './t'`],
    ['an unused local', 'const x = 1\nexport {}'],
  ])('reports %s as an error', async (_name, source) => {
    const files = { 'packages/cadence/src/index.ts': source, 'packages/cadence/src/t.ts': 'export type T = 1\n' }

    expect(await checkTypes(files)).toMatch(/src\/index\.ts.*error TS/)
  })
})

test('the format check rejects unformatted code and unsorted imports', async () => {
  await using house = await createHouse({
    'good.ts': `import { a } from './a.ts'\nimport { b } from './b.ts'\n\nexport const x = [a, b]\n`,
    'loose.ts': 'export const   x = 1;\n',
    'unsorted.ts': `import { b } from './b.ts'\nimport { a } from './a.ts'\n\nexport const x = [a, b]\n`,
  })

  const { exitCode, stdout } = await runTool(house.root, 'oxfmt', [
    '--list-different',
    'good.ts',
    'loose.ts',
    'unsorted.ts',
  ])

  expect(exitCode).toBe(1)
  expect(stdout.trim().split('\n').toSorted()).toEqual(['loose.ts', 'unsorted.ts'])
})

test('the search for unused code reports unused files, exports and dependencies', async () => {
  await using house = await createHouse({
    'packages/core/package.json': JSON.stringify({
      name: '@carillon/core',
      type: 'module',
      exports: { '.': './src/index.ts' },
      dependencies: { 'never-imported': '1.0.0' },
    }),
    'packages/core/src/index.ts': `export { used } from './part.ts'\n`,
    'packages/core/src/part.ts': 'export const used = 1\nexport const unusedExport = 2\n',
    'packages/core/src/orphan.ts': 'export const orphan = 1\n',
  })

  const { exitCode, stdout } = await runTool(house.root, 'knip', ['--reporter', 'compact'])

  expect(exitCode).toBe(1)
  expect(stdout).toContain('packages/core/src/orphan.ts')
  expect(stdout).toContain('unusedExport')
  expect(stdout).toContain('never-imported')
  expect(stdout).not.toMatch(/\bused\b/)
})
