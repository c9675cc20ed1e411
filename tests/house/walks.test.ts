import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

import { expect, test } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const WALKS = ['packages/core/tests/pipeline/walk.test.ts', 'packages/server/tests/http/walk.test.ts']

// V8 compiles a function that is called often, and a debugger no longer stops in it. So each walk gets a process of its own.
test('a create and a run pass the files that the architecture page draws, in that order', () => {
  const vitest = join(ROOT, 'node_modules/vitest/vitest.mjs')

  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [vitest, 'run', '--configLoader', 'native', '--isolate', '--no-color', ...WALKS],
    { cwd: ROOT, encoding: 'utf8', env: { ...process.env, WALKS: 'yes', VITEST: undefined, NO_COLOR: '1' } },
  )

  process.stdout.write(stdout)
  expect(status, stderr).toBe(0)
  expect(stdout).toContain('The walk of a create:')
  expect(stdout).toContain('The walk of a run:')
})
