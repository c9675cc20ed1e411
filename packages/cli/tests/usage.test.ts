import { PassThrough } from 'node:stream'

import { describe, expect, test } from 'vitest'

import { systemClock } from '../src/process/clock.ts'
import { runCli } from '../src/run-cli.ts'

/** Runs a command without a server: these errors are found before a request is sent. */
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

describe('a usage error', () => {
  test.each<[string, string, string, Record<string, string>?]>([
    ['an unknown command', 'shedules', "unknown command 'shedules'\nDid you mean schedules?"],
    ['an unknown option', 'schedules list --stat x', "unknown option '--stat'\nDid you mean --state?"],
    ['a missing argument', 'schedules get', "missing required argument 'schedule'"],
    ['an argument too many', 'doctor now', "too many arguments for 'doctor'"],
    ['a missing option', 'migrate down', "required option '--to <number>' not specified"],
    ['no cadence', 'schedules create x --url http://a', 'expected one of --in, --at, --cron'],
    ['two cadences', 'schedules preview --in 5s --cron @daily', 'got --in and --cron'],
    ['no target', 'schedules create x --in 5s', 'expected --url or --target-json, got neither'],
    ['no name', 'schedules create --in 5s --url http://a', 'expected a name, got none'],
    [
      'two targets',
      'schedules create x --in 5s --url http://a --target-json {}',
      'expected --target-json alone, got it with --url',
    ],
    ['an invalid duration', 'schedules create x --in soon', "option '--in <duration>' argument 'soon' is invalid"],
    ['an invalid number', 'schedules list --limit all', 'expected a whole number'],
    ['invalid JSON', 'schedules create x --payload {', 'expected JSON'],
    ['an invalid header', 'schedules create x --header nonsense', 'expected a header such as'],
    [
      'an unknown kind of authentication',
      'schedules create x --auth basic:a',
      'expected bearer:<secret> or hmac:<secret>',
    ],
    ['authentication without a secret', 'schedules create x --auth hmac:', 'expected bearer:<secret> or hmac:<secret>'],
    [
      '--auth with --target-json',
      'schedules create x --in 5s --auth none --target-json {}',
      'expected --target-json alone, got it with --auth',
    ],
    [
      'a target that is no JSON',
      'schedules create x --in 5s --target-json nonsense',
      '--target-json: expected JSON, @',
    ],
    ['a target that is a list', 'schedules create x --in 5s --target-json []', 'expected a JSON object, got a list'],
    [
      'a target without a kind',
      'schedules create x --in 5s --target-json {}',
      '--target-json: expected a kind such as "echo", got none: see `carillon target-kinds list`',
    ],
    [
      'a target in a file that is no JSON',
      'schedules preview --in 5s --target-json @usage.test.ts',
      '--target-json: expected JSON, @ and a file, or - for standard input, got something else',
    ],
    [
      'a preview of a target with a count',
      'schedules preview --in 5s --count 3 --target-json {}',
      "cannot be used with option '--count",
    ],
    ['a run limit that is no number', 'schedules create x --run-limit few', 'expected a whole number, or none'],
    ['two hooks of an import', 'import x --url http://a --target-json {}', "cannot be used with option '--url"],
    [
      'two inputs from standard input',
      'import - --target-json -',
      'expected one of the file and --target-json to be -',
    ],
    ['half a second for an option in whole seconds', 'schedules create x --timeout 500ms', 'expected whole seconds'],
    ['an empty list', 'worker --targets ,', 'expected a list such as http,graph'],
    ['a file with other options', 'schedules create --file x --in 5s', 'expected --file alone'],
    ['a dry run with --wait', 'schedules create x --dry-run --wait', "'--dry-run' cannot be used with option '--wait'"],
    ['an unknown shell', 'completion tcsh', "'tcsh' is invalid"],
    ['an invalid URL', 'schedules list', 'expected a URL such as', { CARILLON_URL: 'localhost' }],
  ])('ends with exit code 2 and names the expected value: %s', async (_what, line, message, env) => {
    const { stdout, stderr, exitCode } = await run(line.split(' '), env)

    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 })
    expect(stderr).toContain(message)
    expect(stderr).toMatch(/^error: /)
  })

  test('is printed as JSON with --json', async () => {
    const { stderr, exitCode } = await run(['schedules', 'lst', '--json'])

    expect(exitCode).toBe(2)
    expect(JSON.parse(stderr)).toEqual({ error: { code: 'usage', message: "unknown command 'lst'", errors: [] } })
  })
})

test.each([
  ['that does not exist', 'missing.json', 'file_unreadable'],
  ['that is not JSON', 'usage.test.ts', 'file_invalid'],
])('a file %s is refused', async (_what, file, code) => {
  const { stderr, exitCode } = await run(['schedules', 'create', '--file', file, '--json'])

  expect(exitCode).toBe(1)
  expect(JSON.parse(stderr)).toMatchObject({ error: { code } })
})
