import { join } from 'node:path'

import { expect, test } from 'vitest'

import { createTree } from './fixture-tree.ts'
import { REPOSITORY, runTool } from './run-tool.ts'

/** Runs Vitest with the repository's reporter over one test file. */
async function runTests(source: string): Promise<{ exitCode: number; lastLine: string | undefined }> {
  const vitest = join(REPOSITORY, 'node_modules/vitest')
  await using tree = await createTree({
    'vitest.config.ts': `export default { test: { reporters: [${JSON.stringify(join(REPOSITORY, 'scripts/count-reporter.ts'))}] } }`,
    'bell.test.ts': `import { describe, beforeAll, test } from ${JSON.stringify(join(vitest, 'dist/index.js'))}\n${source}`,
  })
  const { exitCode, stdout } = await runTool(tree.root, 'vitest', ['run'])
  return { exitCode, lastLine: stdout.trimEnd().split('\n').at(-1) }
}

test('the last line counts the passed and the failed tests', async () => {
  const result = await runTests(`
    test('a', () => {})
    test('b', () => {})
    test('c', () => { throw new Error('no') })`)

  expect(result).toEqual({ exitCode: 1, lastLine: '2 passed, 1 failed' })
})

// The skips below are source text of a fixture, to test how they are counted. No test of this repository is skipped.
test('skipped tests are counted only if there are any', async () => {
  const result = await runTests(`
    test('a', () => {})
    test.skip('b', () => {})`)

  expect(result).toEqual({ exitCode: 0, lastLine: '1 passed, 0 failed, 1 skipped' })
})

test('a run in which every test was skipped fails', async () => {
  const result = await runTests(`test.skip('a', () => {})`)

  expect(result).toEqual({ exitCode: 1, lastLine: '0 passed, 0 failed, 1 skipped' })
})

test('a file that cannot be loaded counts as a failure', async () => {
  const result = await runTests(`throw new Error('no')`)

  expect(result).toEqual({ exitCode: 1, lastLine: '0 passed, 1 failed' })
})

test('a hook that fails counts as a failure', async () => {
  const result = await runTests(`
    test('a', () => {})
    describe('b', () => {
      beforeAll(() => { throw new Error('no') })
      test('c', () => {})
    })`)

  expect(result).toEqual({ exitCode: 1, lastLine: '1 passed, 1 failed, 1 skipped' })
})

test('an error that no test caught counts as a failure', async () => {
  const result = await runTests(`test('a', () => { void Promise.reject(new Error('no')) })`)

  expect(result).toEqual({ exitCode: 1, lastLine: '1 passed, 1 failed' })
})
