import { PassThrough } from 'node:stream'

import type { Schedule } from '@carillon/api'
import { runCli, systemClock } from '@carillon/cli'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { CliRig } from './rig.ts'

let rig: CliRig

beforeAll(async () => {
  rig = await CliRig.start()
})

afterAll(() => rig[Symbol.asyncDispose]())

function make(name: string): Promise<Schedule> {
  const target = { kind: 'http' as const, url: rig.target('/ok') }
  return rig.client.schedules.create({ name, cadence: { kind: 'cron', expression: '@daily' }, target })
}

/** Runs the command line in this process with a simulated terminal, which a child process would not have. */
async function onTerminal(args: readonly string[], { typed = '', width = 100, hasColor = false, env = {} } = {}) {
  let [stdout, stderr] = ['', '']
  const stdin = new PassThrough()
  stdin.end(typed)
  const exitCode = await runCli(args, {
    env: { ...rig.env, ...env },
    cwd: rig.folder,
    clock: systemClock,
    stdin,
    signal: new AbortController().signal,
    terminal: {
      writeOut: (text) => (stdout += text),
      writeError: (text) => (stderr += text),
      width,
      hasColor,
      canAsk: true,
      canRedraw: true,
    },
  })
  return { stdout, stderr, exitCode }
}

describe('on a terminal', () => {
  test('a delete asks for confirmation, and deletes if the answer is yes', async () => {
    const { id } = await make('Asked yes')

    const { stdout, stderr, exitCode } = await onTerminal(['schedules', 'delete', 'Asked yes'], { typed: 'y\n' })

    expect({ stdout, exitCode }).toEqual({ stdout: 'Asked yes is deleted\n', exitCode: 0 })
    expect(stderr).toContain(`Delete "Asked yes" (${id})? [y/N] `)
    await expect(rig.client.schedules.get(id)).rejects.toMatchObject({ code: 'schedule_not_found' })
  })

  test.each(['n\n', '\n', 'maybe\n'])('a delete changes nothing if the answer is %j', async (typed) => {
    const { id } = await make('Asked no')

    const { stdout, stderr, exitCode } = await onTerminal(['schedules', 'delete', id], { typed })

    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 })
    expect(stderr).toContain('not confirmed: nothing was changed')
    expect((await rig.client.schedules.get(id)).id).toBe(id)
  })

  test('a purge shows the counts, and removes the project once its name is typed', async () => {
    const key = (await rig.client.keys.create({ project: 'shed', subject: 'user:a', role: 'admin' })).key
    const env = { CARILLON_API_KEY: key }

    const mistyped = await onTerminal(['project', 'purge', 'shed'], { typed: 'y\n', env })
    const typed = await onTerminal(['project', 'purge', 'shed'], { typed: 'shed\n', env })

    expect(mistyped).toMatchObject({ stdout: '', exitCode: 2 })
    expect(mistyped.stderr).toMatch(
      /^this will be removed permanently:\nSchedules +0\n[^]*Type the name of the project to continue: /,
    )
    expect(typed).toMatchObject({ stdout: 'project shed was removed\n', exitCode: 0 })
  })

  test('a secret cannot be typed on a terminal, because the terminal would show it', async () => {
    const { stdout, stderr, exitCode } = await onTerminal(['secrets', 'put', 'token'], { typed: 'canary\n' })

    expect({ stdout, exitCode }).toEqual({ stdout: '', exitCode: 2 })
    expect(stderr).toContain('use < file or --value-file')
  })

  test('tables fit the width, ids are not cut, and control characters in names are escaped', async () => {
    const { id } = await make('A name as long as \u001B[31mnobody\u001B[0m would have thought, with 日本語 in it')

    const { stdout } = await onTerminal(['schedules', 'list', '--query', 'as long as'], { width: 100 })

    const [, line = ''] = stdout.split('\n')
    expect(line).toContain(id)
    expect(line).toContain('…')
    expect(line).not.toContain('\u001B')
    expect(line.length).toBeLessThanOrEqual(100)
  })

  test('states have colours', async () => {
    await make('Coloured')

    const { stdout } = await onTerminal(['schedules', 'list', '--query', 'Coloured'], { hasColor: true })

    expect(stdout).toContain('\u001B[32mactive')
  })

  test('an import shows a progress bar and removes it', async () => {
    const schedule = {
      name: 'Bar',
      cadence: { kind: 'cron', expression: '@daily' },
      target: { kind: 'http', url: rig.target('/ok') },
    }

    const { stdout, stderr } = await onTerminal(['import', '-'], { typed: JSON.stringify([schedule]) })

    expect(stdout).toBe('1 created, 0 already exist, 0 refused\n')
    expect(stderr).toMatch(/^\rimporting █{30} 1\/1\r +\r$/)
  })
})
