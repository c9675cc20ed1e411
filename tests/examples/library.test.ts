import { join } from 'node:path'

import { FETCH_LIMIT_MS } from '@carillon/http/testing'
import { expect, test } from 'vitest'

import { REPOSITORY, runTool } from '../house/run-tool.ts'

function runExample(name: string): Promise<{ exitCode: number; stdout: string }> {
  return runTool(REPOSITORY, process.execPath, [join(REPOSITORY, 'examples', name)])
}

test.concurrent('an application with a target kind of its own is called and retried, and gets the problems of its input', async () => {
  const { exitCode, stdout } = await runExample('embedding.ts')

  expect({ exitCode, lines: stdout.trim().split('\n') }).toEqual({
    exitCode: 0,
    lines: [
      'attempt 1: the run is retrying',
      'to alice@example.com: the plants are thirsty (sched:…)',
      'attempt 2: the run is succeeded',
      'ledger: succeeded after 2 attempts',
      expect.stringMatching(/^refused: cadence\.at: .*"soon".* \(and 2 more\)$/) as string,
    ],
  })
})

test.concurrent('two workers on one Postgres call each slot once, even if one of them stops (I2)', async () => {
  const { exitCode, stdout } = await runExample('two-workers.ts')

  expect({ exitCode, lines: stdout.trim().split('\n') }).toEqual({
    exitCode: 0,
    lines: ['calls: 100, distinct: 100', 'settled by worker two after worker one had left: 50'],
  })
})

test.concurrent(
  'a Restate service runs its handler once, although its first attempt was cut (I5)',
  async () => {
    const { exitCode, stdout } = await runExample('restate.ts')

    const lines = stdout.trim().split('\n')
    // The first attempt reaches its time limit. On a busy machine later attempts do too, until one is answered.
    const cut = lines.filter((line) => line.endsWith(': the run is retrying'))
    expect({ exitCode, cut: cut[0] }).toEqual({ exitCode: 0, cut: 'attempt 1: the run is retrying' })
    expect(lines.filter((line) => line === 'sending list a')).toHaveLength(1)
    expect(lines.slice(-2)).toEqual([
      `attempt ${cut.length + 1}: the run is succeeded`,
      `ledger: succeeded after ${cut.length + 1} attempts`,
    ])
  },
  FETCH_LIMIT_MS,
)
