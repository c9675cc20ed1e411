import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { BINARY } from './carillon-process.ts'
import { CliRig } from './rig.ts'

let rig: CliRig

beforeAll(async () => {
  rig = await CliRig.start()
})

afterAll(() => rig[Symbol.asyncDispose]())

const NO_SERVICE = { env: { CARILLON_URL: 'http://127.0.0.1:1' } }

describe('an error', () => {
  test('for a server that does not run is one line, and a hint how to start it', async () => {
    expect(await rig.run('schedules list', [], NO_SERVICE)).toEqual({
      stdout: '',
      stderr:
        'error: expected an answer from a Carillon server at http://127.0.0.1:1, got none: is it running there?\n' +
        'start it with `npm start`, or set CARILLON_URL to its address\n',
      exitCode: 1,
    })
  })

  test('is JSON on stderr with --json, and stdout is empty', async () => {
    const { stdout, stderr, exitCode } = await rig.run('schedules list', ['--json'], NO_SERVICE)

    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 1 })
    expect(JSON.parse(stderr)).toEqual({
      error: {
        code: 'unreachable',
        message: 'expected an answer from a Carillon server at http://127.0.0.1:1, got none: is it running there?',
        errors: [],
      },
    })
  })

  test('for a missing key names where the program looked for it', async () => {
    const { stderr, exitCode } = await rig.run('schedules list', [], { env: { CARILLON_API_KEY: '' } })

    expect(exitCode).toBe(1)
    expect(stderr).toContain(
      `error: expected an API key in CARILLON_API_KEY or in ${join(rig.folder, '.carillon/admin.key')}, got none\n`,
    )
  })

  test('for a wrong key names where the key comes from', async () => {
    mkdirSync(join(rig.folder, 'elsewhere'))
    writeFileSync(join(rig.folder, 'elsewhere/admin.key'), 'a_key_of_another_installation\n')

    const { stderr, exitCode } = await rig.run('schedules list', [], {
      env: { CARILLON_API_KEY: '', CARILLON_DATA_DIR: 'elsewhere' },
    })

    expect(exitCode).toBe(1)
    expect(stderr).toContain(`the key comes from ${join(rig.folder, 'elsewhere/admin.key')}`)
    expect(stderr).not.toContain('a_key_of_another_installation')
  })

  test('for an invalid schedule names each field at fault, as text and as JSON', async () => {
    const args = ['Bad', '--cron', '61 * * * *', '--url', 'http://nowhere.example/']

    const people = await rig.run('schedules create', args)
    const programs = await rig.run('schedules create', [...args, '--json'])

    expect(people.exitCode).toBe(1)
    expect(people.stderr.split('\n')).toEqual([
      'error: the request has 2 errors',
      expect.stringMatching(/^ {2}cadence\.expression: .*0 to 59.*"61"/),
      expect.stringMatching(/^ {2}target\.url: .*nowhere\.example/),
      '',
    ])
    expect(JSON.parse(programs.stderr)).toMatchObject({
      error: { code: 'invalid_input', errors: [{ field: 'cadence.expression' }, { field: 'target.url' }] },
    })
    expect((await rig.client.schedules.list()).items).toEqual([])
  })

  test('has a stack trace only with CARILLON_DEBUG', async () => {
    const { stderr } = await rig.run('schedules list', [], { env: { ...NO_SERVICE.env, CARILLON_DEBUG: '1' } })

    expect(stderr).toMatch(/^error: expected an answer from a Carillon server .*\n.*\nUnreachableError: .*\n {4}at /)
    expect(stderr).toContain('caused by: ')
  })

  test('for an invalid setting names the variable', async () => {
    const { stderr, exitCode } = await rig.run('up', [], { env: { CARILLON_PORT: 'many' } })

    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/^error: CARILLON_PORT: expected a port/)
  })
})

describe('a usage error', () => {
  test('ends with exit code 2 and suggests a similar command', async () => {
    const { stdout, stderr, exitCode } = await rig.run('schedules', ['lst'])

    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 })
    expect(stderr).toBe("error: unknown command 'lst'\nDid you mean list?\n")
  })

  test('without a subcommand shows the help on stderr', async () => {
    const { stdout, stderr, exitCode } = await rig.run('schedules')

    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 })
    expect(stderr).toMatch(/^Usage: carillon schedules/)
  })
})

describe('the program', () => {
  test('prints its version and its help on stdout', async () => {
    const [version, help, completion] = await Promise.all([
      rig.run('--version'),
      rig.run('help', ['schedules']),
      rig.run('completion', ['bash']),
    ])

    expect(version).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^carillon \d+\.\d+\.\d+\n$/) as string,
    })
    expect(help).toMatchObject({
      exitCode: 0,
      stderr: '',
      stdout: expect.stringMatching(/^Usage: carillon schedules/) as string,
    })
    expect(completion.stdout).toContain('complete -o default -F _carillon carillon\n')
  })

  test.each([[''], ['--json']])('reports in one line that it cannot write its output %s', async (flag) => {
    const command = [process.execPath, BINARY, 'schedules', 'preview', '--cron', '@daily']
      .map((word) => JSON.stringify(word))
      .join(' ')
    const shell = spawn('bash', ['-c', `${command} ${flag} > /dev/full`], {
      env: { ...process.env, ...rig.env },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const [stderr, [exitCode]] = await Promise.all([text(shell.stderr), once(shell, 'close') as Promise<[number]>])

    expect(exitCode).toBe(1)
    if (flag === '') expect(stderr).toMatch(/^error: cannot write to standard output: .*no space left on device.*\n$/)
    else expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'output_unwritable' } })
  })

  test('ends without an error when the reader of its output closes the pipe', async () => {
    const env = { ...process.env, ...rig.env }
    const node = JSON.stringify(process.execPath)
    const script = `${node} ${JSON.stringify(BINARY)} events --json | head -n 1; echo "\${PIPESTATUS[0]}"`
    const shell = spawn('bash', ['-c', script], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const output = { out: '', err: '' }
    shell.stdout.on('data', (chunk: Buffer) => (output.out += chunk.toString()))
    shell.stderr.on('data', (chunk: Buffer) => (output.err += chunk.toString()))
    // Waits until the program is connected and has printed two events. head reads only the first one.
    const closed = once(shell, 'close')
    const ended = new AbortController()
    void closed.then(() => ended.abort())
    while (!ended.signal.aborted) {
      await Promise.race([
        closed,
        rig.client.schedules.create({
          name: 'x',
          cadence: { kind: 'cron', expression: '@daily' },
          target: { kind: 'http', url: rig.target('/ok') },
        }),
      ])
    }

    expect(output.err).toBe('')
    expect(output.out).toMatch(/^\{"id":.*\}\n0\n$/)
  })
})
