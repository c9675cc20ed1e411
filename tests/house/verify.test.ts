import { join } from 'node:path'

import { expect, test } from 'vitest'

import { createTree } from './fixture-tree.ts'
import { REPOSITORY, runTool } from './run-tool.ts'

const STEPS = ['format:check', 'lint', 'types', 'boundaries', 'unused', 'bundle:cadence', 'test']

/** Runs verify in a house whose steps only say their name, but for those given. */
async function verify(scripts: Readonly<Record<string, string>> = {}): Promise<{ exitCode: number; lines: string[] }> {
  const named = Object.fromEntries(STEPS.map((step) => [step, `echo ran ${step}`]))
  await using tree = await createTree({ 'package.json': JSON.stringify({ scripts: { ...named, ...scripts } }) })
  const { exitCode, stdout } = await runTool(tree.root, process.execPath, [join(REPOSITORY, 'scripts/verify.ts')])
  return { exitCode, lines: stdout.trimEnd().split('\n') }
}

test('verify runs every step, says how long each took, and ends with the last line of the tests', async () => {
  const { exitCode, lines } = await verify({ test: 'echo "3 passed, 0 failed"' })

  expect(exitCode).toBe(0)
  expect(lines.filter((line) => line.startsWith('ran '))).toEqual(STEPS.slice(0, -1).map((step) => `ran ${step}`))
  expect(lines.filter((line) => /^✓ .* \d+\.\d s$/.test(line))).toHaveLength(STEPS.length - 1)
  expect(lines.at(-1)).toBe('3 passed, 0 failed')
})

test('verify stops at the first step that fails', async () => {
  const { exitCode, lines } = await verify({ lint: 'exit 1' })

  expect(exitCode).toBe(1)
  expect(lines).not.toContain('ran types')
  expect(lines.at(-1)).toBe('✗ lint failed')
})
