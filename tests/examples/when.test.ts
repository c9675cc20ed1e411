import { join } from 'node:path'

import { expect, test } from 'vitest'

import { REPOSITORY, runTool } from '../house/run-tool.ts'

function when(...args: string[]): Promise<{ exitCode: number; stdout: string }> {
  return runTool(REPOSITORY, process.execPath, [join(REPOSITORY, 'examples/when.ts'), ...args])
}

test('the example `when` prints when a rule comes due, and the effect of DST changes', async () => {
  const { exitCode, stdout } = await when('30 2 * * *', 'America/New_York', '2027-03-13T12:00:00Z')

  expect(exitCode).toBe(0)
  expect(stdout.split('\n').slice(0, 3)).toEqual([
    'At 02:30 every day, in America/New_York',
    '',
    '  2027-03-14T07:00:00.000Z  2027-03-14T03:00:00-04:00[America/New_York]',
  ])
  expect(stdout).toContain('02:30 does not exist')
})

test('the example `when` prints a rule of its own without arguments', async () => {
  const { exitCode, stdout } = await when()

  expect(exitCode).toBe(0)
  expect(stdout).toContain('At 09:00 on Monday through Friday, in Europe/Madrid')
})

test('the example `when` accepts a cadence of any kind as JSON, and states when it ends', async () => {
  const { stdout } = await when('{"kind":"once","at":"2020-01-01T00:00:00Z"}')

  expect(stdout).toContain('Once, on 1 January 2020 at 00:00, in UTC')
  expect(stdout).toContain('It does not come due any more.')
})

test('the example `when` states the problem of an invalid rule, and fails', async () => {
  const { exitCode, stdout } = await when('60 9 * * *')

  expect(exitCode).toBe(1)
  expect(stdout).toContain('expression: expected 0 to 59 in the minute field, got "60" at position 0')
})
