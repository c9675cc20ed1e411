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

const NOBODY = { env: { CARILLON_URL: 'http://127.0.0.1:1' } }

describe('an error', () => {
  test('of a service that is not there says how to start it, in one line and a hint', async () => {
    expect(await rig.run('schedules list', [], NOBODY)).toEqual({
      stdout: '',
      stderr:
        'error: nobody answers at http://127.0.0.1:1: is the service running there?\n' +
        'start it with `npm start`, or say in CARILLON_URL where it is\n',
      exitCode: 1,
    })
  })

  test('is JSON for programs, on stderr, and nothing is on stdout', async () => {
    const { stdout, stderr, exitCode } = await rig.run('schedules list', ['--json'], NOBODY)

    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 1 })
    expect(JSON.parse(stderr)).toEqual({
      error: {
        code: 'unreachable',
        message: 'nobody answers at http://127.0.0.1:1: is the service running there?',
        errors: [],
      },
    })
  })

  test('of a missing key says where one was looked for', async () => {
    const { stderr, exitCode } = await rig.run('schedules list', [], { env: { CARILLON_API_KEY: '' } })

    expect(exitCode).toBe(1)
    expect(stderr).toContain(
      `error: no API key: CARILLON_API_KEY is not set, and there is none in ${join(rig.folder, '.carillon/admin.key')}\n`,
    )
  })

  test('of a wrong key says where that came from', async () => {
    mkdirSync(join(rig.folder, 'elsewhere'))
    writeFileSync(join(rig.folder, 'elsewhere/admin.key'), 'a_key_of_another_installation\n')

    const { stderr, exitCode } = await rig.run('schedules list', [], {
      env: { CARILLON_API_KEY: '', CARILLON_DATA_DIR: 'elsewhere' },
    })

    expect(exitCode).toBe(1)
    expect(stderr).toContain(`the key was taken from ${join(rig.folder, 'elsewhere/admin.key')}`)
    expect(stderr).not.toContain('a_key_of_another_installation')
  })

  test('of a body names each field at fault, for people and for programs', async () => {
    const args = ['Bad', '--cron', '61 * * * *', '--url', 'http://nowhere.example/']

    const people = await rig.run('schedules create', args)
    const programs = await rig.run('schedules create', [...args, '--json'])

    expect(people.exitCode).toBe(1)
    expect(people.stderr.split('\n')).toEqual([
      'error: 2 things are wrong',
      expect.stringMatching(/^ {2}cadence\.expression: .*0 to 59.*"61"/),
      expect.stringMatching(/^ {2}target\.url: .*nowhere\.example/),
      '',
    ])
    expect(JSON.parse(programs.stderr)).toMatchObject({
      error: { code: 'invalid_input', errors: [{ field: 'cadence.expression' }, { field: 'target.url' }] },
    })
    expect((await rig.client.schedules.list()).items).toEqual([])
  })

  test('shows where it comes from only if asked to', async () => {
    const { stderr } = await rig.run('schedules list', [], { env: { ...NOBODY.env, CARILLON_DEBUG: '1' } })

    expect(stderr).toMatch(/^error: nobody answers .*\n.*\nUnreachableError: .*\n {4}at /)
    expect(stderr).toContain('caused by: ')
  })

  test('of settings names the variable', async () => {
    const { stderr, exitCode } = await rig.run('up', [], { env: { CARILLON_PORT: 'many' } })

    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/^error: CARILLON_PORT: expected a port/)
  })
})

describe('a mistake in typing', () => {
  test('ends with 2, and suggests what may be meant', async () => {
    const { stdout, stderr, exitCode } = await rig.run('schedules', ['lst'])

    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 })
    expect(stderr).toBe("error: unknown command 'lst'\nDid you mean list?\n")
  })

  test('that leaves out the command shows the help on stderr', async () => {
    const { stdout, stderr, exitCode } = await rig.run('schedules')

    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 })
    expect(stderr).toMatch(/^Usage: carillon schedules/)
  })
})

describe('the program', () => {
  test('tells its version and helps, on stdout', async () => {
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

  test.each([[''], ['--json']])('says in one sentence that its output cannot be written %s', async (flag) => {
    const command = [process.execPath, BINARY, 'schedules', 'preview', '--cron', '@daily']
      .map((word) => JSON.stringify(word))
      .join(' ')
    const shell = spawn('bash', ['-c', `${command} ${flag} > /dev/full`], {
      env: { ...process.env, ...rig.env },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const [stderr, [exitCode]] = await Promise.all([text(shell.stderr), once(shell, 'close') as Promise<[number]>])

    expect(exitCode).toBe(1)
    if (flag === '') expect(stderr).toMatch(/^error: the output cannot be written: .*no space left on device.*\n$/)
    else expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'output_unwritable' } })
  })

  test('ends quietly when whoever reads its output has enough of it', async () => {
    const env = { ...process.env, ...rig.env }
    const node = JSON.stringify(process.execPath)
    const script = `${node} ${JSON.stringify(BINARY)} events --json | head -n 1; echo "\${PIPESTATUS[0]}"`
    const shell = spawn('bash', ['-c', script], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const output = { out: '', err: '' }
    shell.stdout.on('data', (chunk: Buffer) => (output.out += chunk.toString()))
    shell.stderr.on('data', (chunk: Buffer) => (output.err += chunk.toString()))
    // Until it has connected and been told of two, of which head reads one.
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
