import { join } from 'node:path'

import { expect, test } from 'vitest'

import { createTree } from './fixture-tree.ts'
import { REPOSITORY, runTool } from './run-tool.ts'

const STEPS = ['format:check', 'lint', 'types', 'boundaries', 'unused', 'bundle:cadence']

/** Runs the checks in a fixture repository. Each step prints its name, unless `scripts` replaces it. */
async function check(scripts: Readonly<Record<string, string>> = {}): Promise<{ exitCode: number; lines: string[] }> {
  const named = Object.fromEntries(STEPS.map((step) => [step, `echo ran ${step}`]))
  await using tree = await createTree({ 'package.json': JSON.stringify({ scripts: { ...named, ...scripts } }) })
  const { exitCode, stdout } = await runTool(tree.root, process.execPath, [join(REPOSITORY, 'scripts/check.ts')])
  return { exitCode, lines: stdout.trimEnd().split('\n') }
}

test('check runs every step and prints how long each one took', async () => {
  const { exitCode, lines } = await check()

  expect(exitCode).toBe(0)
  expect(lines.filter((line) => line.startsWith('ran '))).toEqual(STEPS.map((step) => `ran ${step}`))
  expect(lines.filter((line) => /^✓ .* \d+\.\d s$/.test(line))).toHaveLength(STEPS.length)
})

test('check stops at the first step that fails', async () => {
  const { exitCode, lines } = await check({ lint: 'exit 1' })

  expect(exitCode).toBe(1)
  expect(lines).not.toContain('ran types')
  expect(lines.at(-1)).toMatch(/^✗ lint \d+\.\d s$/)
})
