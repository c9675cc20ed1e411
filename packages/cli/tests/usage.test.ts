import { PassThrough } from 'node:stream'

import { describe, expect, test } from 'vitest'

import { systemClock } from '../src/clock.ts'
import { runCli } from '../src/run-cli.ts'

/** No service is needed: what is wrong is found before one is asked. */
async function run(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  let [stdout, stderr] = ['', '']
  const exitCode = await runCli(args, {
    env: { CARILLON_API_KEY: 'key', ...env },
    cwd: import.meta.dirname,
    clock: systemClock,
    stdin: new PassThrough(),
    signal: new AbortController().signal,
    terminal: {
      writeOut: (text) => (stdout += text),
      writeError: (text) => (stderr += text),
      width: null,
      hasColor: false,
      canAsk: false,
      canRedraw: false,
    },
  })
  return { stdout, stderr, exitCode }
}

describe('a mistake in typing', () => {
  test.each<[string, string, string, Record<string, string>?]>([
    ['a command that is not there', 'shedules', "unknown command 'shedules'\nDid you mean schedules?"],
    ['an option that is not there', 'schedules list --stat x', "unknown option '--stat'\nDid you mean --state?"],
    ['an argument that is missing', 'schedules get', "missing required argument 'schedule'"],
    ['an argument too many', 'doctor now', "too many arguments for 'doctor'"],
    ['an option that must be there', 'migrate down', "required option '--to <number>' not specified"],
    ['no rule of time', 'schedules create x --url http://a', 'expected one of --in, --at, --cron'],
    ['two rules of time', 'schedules preview --in 5s --cron @daily', 'got --in and --cron'],
    ['nothing to call', 'schedules create x --in 5s', 'expected --url or --target, got neither'],
    ['no name', 'schedules create --in 5s --url http://a', 'expected a name, got none'],
    ['two targets', 'schedules create x --in 5s --url http://a --target {}', 'expected --target alone'],
    ['a value that is none', 'schedules create x --in soon', "option '--in <duration>' argument 'soon' is invalid"],
    ['a number that is none', 'schedules list --limit all', 'expected a whole number'],
    ['JSON that is none', 'schedules create x --payload {', 'expected JSON'],
    ['a header that is none', 'schedules create x --header nonsense', 'expected a header such as'],
    ['a proof that is none', 'schedules create x --auth basic:a', 'expected bearer:<secret> or hmac:<secret>'],
    ['a proof by no secret', 'schedules create x --auth hmac:', 'expected bearer:<secret> or hmac:<secret>'],
    ['two targets by their proof', 'schedules create x --in 5s --auth none --target {}', 'expected --target alone'],
    ['half a second of what has whole ones', 'schedules create x --timeout 500ms', 'expected whole seconds'],
    ['a list of nothing', 'worker --targets ,', 'expected a list such as http,graph'],
    ['a file beside flags', 'schedules create --file x --in 5s', 'expected --file alone'],
    [
      'a trial that is waited for',
      'schedules create x --dry-run --wait',
      "'--dry-run' cannot be used with option '--wait'",
    ],
    ['a shell that is none', 'completion tcsh', "'tcsh' is invalid"],
    ['a URL that is none', 'schedules list', 'expected a URL such as', { CARILLON_URL: 'localhost' }],
  ])('ends with 2 and says what was expected: %s', async (_what, line, message, env) => {
    const { stdout, stderr, exitCode } = await run(line.split(' '), env)

    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 })
    expect(stderr).toContain(message)
    expect(stderr).toMatch(/^error: /)
  })

  test('is JSON for programs as well', async () => {
    const { stderr, exitCode } = await run(['schedules', 'lst', '--json'])

    expect(exitCode).toBe(2)
    expect(JSON.parse(stderr)).toEqual({ error: { code: 'usage', message: "unknown command 'lst'", errors: [] } })
  })
})

test.each([
  ['that is not there', 'missing.json', 'file_unreadable'],
  ['that is no JSON', 'usage.test.ts', 'file_invalid'],
])('a file %s is refused', async (_what, file, code) => {
  const { stderr, exitCode } = await run(['schedules', 'create', '--file', file, '--json'])

  expect(exitCode).toBe(1)
  expect(JSON.parse(stderr)).toMatchObject({ error: { code } })
})
