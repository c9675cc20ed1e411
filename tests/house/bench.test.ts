import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { WORK_NAMES } from '../../bench/plan.ts'
import { BULLMQ_ON_REDIS } from '../../bench/report/checks.ts'
import { RESULTS_VERSION, type Failure, type Results } from '../../bench/results.ts'
import { REPOSITORY, runTool } from './run-tool.ts'

const PNG_SIGNATURE = '89504e470d0a1a0a'
/** This limit is longer than the run's own, and only ends a run that hangs. Alone on two cores the run takes less than a minute. */
const SMOKE_MS = 16 * 60_000

/** `npm install` does not install Redis, and only root can install it. */
function isForWantOfRedis({ subject, reason }: Failure): boolean {
  return subject === BULLMQ_ON_REDIS && reason.startsWith('expected a Redis, got none')
}

describe('a smoke run of the bench', () => {
  const out = mkdtempSync(join(tmpdir(), 'carillon-bench-test-'))
  let outcome: Awaited<ReturnType<typeof runTool>>

  beforeAll(async () => {
    outcome = await runTool(REPOSITORY, 'npm', ['run', '--silent', 'bench', '--', '--smoke', '--out', out])
  }, SMOKE_MS)
  afterAll(() => {
    rmSync(out, { recursive: true, force: true })
  })

  function readResults(): Results {
    return JSON.parse(readFileSync(join(out, 'results.json'), 'utf8')) as Results
  }

  test('is complete', () => {
    expect(outcome.exitCode, outcome.stderr).toBe(0)
  })

  test('runs every benchmark, and where there is no Redis only the parts that need one fail', () => {
    const { version, works, figures, failures, isComplete } = readResults()

    expect(failures.filter((failure) => !isForWantOfRedis(failure))).toEqual([])
    expect({ version, isComplete }).toEqual({ version: RESULTS_VERSION, isComplete: true })
    expect(works.map(({ name }) => name)).toEqual(WORK_NAMES)
    expect([...new Set(figures.map(({ work }) => work))]).toEqual(WORK_NAMES)
    expect(figures.filter(({ median }) => !Number.isFinite(median))).toEqual([])
  })

  test('has every number that the goals need', () => {
    const { checks, failures } = readResults()
    const unmeasured = checks.filter(({ measured }) => measured === 'not measured').map(({ id }) => id)

    expect(unmeasured).toEqual(failures.some(isForWantOfRedis) ? ['drain-bullmq', 'create-bullmq'] : [])
  })

  test('writes a page whose charts exist and are pictures', () => {
    const page = readFileSync(join(out, 'RESULTS.md'), 'utf8')
    const shown = [...page.matchAll(/\(charts\/([\w-]+\.png)\)/g)].map((match) => match[1] ?? '')

    expect(shown.toSorted()).toEqual(readdirSync(join(out, 'charts')).toSorted())
    for (const file of shown) {
      expect(readFileSync(join(out, 'charts', file)).toString('hex', 0, 8), file).toBe(PNG_SIGNATURE)
    }
  })

  // This test follows the smoke run, which installs the packages with these types.
  test('type-checks, including the types of the peers', async () => {
    const { exitCode, stdout } = await runTool(join(REPOSITORY, 'bench'), 'npm', ['run', '--silent', 'types'])

    expect(stdout).toBe('')
    expect(exitCode).toBe(0)
  }, 300_000)
})
