import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import type { EditPlan, Schedule, SchedulePreview, TargetKind } from '@carillon/api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { CliRig } from './rig.ts'

let rig: CliRig

beforeAll(async () => {
  rig = await CliRig.start()
})

afterAll(() => rig[Symbol.asyncDispose]())

const ECHO = '{"kind":"echo","payload":{"a":1}}'

describe('the kinds of targets', () => {
  test('are listed with their titles, scopes and examples', async () => {
    const { stdout } = await rig.run('target-kinds list', [])
    const page = await rig.ask<{ items: TargetKind[] }>('target-kinds list', [])

    expect(stdout).toMatch(/^KIND +TITLE +SCOPE +ATTEMPTS +EXAMPLE/)
    expect(stdout).toMatch(/^echo +Echo +echo:dispatch:payload +1 +\{"kind":"echo"/m)
    expect(page).toEqual(await rig.client.targetKinds.list())
  })

  test('are shown with their fields, their policies and an example to copy', async () => {
    const { stdout } = await rig.run('target-kinds show', ['http'])
    const shown = await rig.ask<TargetKind>('target-kinds show', ['http'])

    expect(stdout).toMatch(/^Policy \(once\) +overlap forbid, missed run_once, attempts 10$/m)
    expect(stdout).toMatch(/^url +string +yes/m)
    expect(stdout).toMatch(/^Example: --target-json '\{"kind":"http","url":"https:/m)
    expect(shown.kind).toBe('http')
  })

  test('name the known ones if another one is asked for', async () => {
    const { stderr, exitCode } = await rig.run('target-kinds show', ['fax'])

    expect({ stderr, exitCode }).toEqual({ stderr: 'error: expected one of echo, http, got fax\n', exitCode: 2 })
  })
})

describe('--target-json', () => {
  test('creates and edits schedules of any kind, from the command line, a file and standard input', async () => {
    writeFileSync(join(rig.folder, 'target.json'), ECHO)

    const cadence = ['--every', '1h']
    const inline = await rig.ask<Schedule>('schedules create', ['Inline', ...cadence, '--target-json', ECHO])
    const file = await rig.ask<Schedule>('schedules create', ['File', ...cadence, '--target-json', '@target.json'])
    const piped = await rig.ask<Schedule>('schedules create', ['Piped', ...cadence, '--target-json', '-'], {
      input: ECHO,
    })
    const edited = await rig.ask<Schedule>('schedules edit', ['Inline', '--target-json', '{"kind":"echo","payload":2}'])

    expect([inline, file, piped].map(({ target }) => target)).toEqual(
      Array.from({ length: 3 }, () => JSON.parse(ECHO) as object),
    )
    expect(edited.target).toEqual({ kind: 'echo', payload: 2 })
  })

  test('lets the server name the field at fault', async () => {
    const args = ['Bad', '--every', '1h', '--target-json', '{"kind":"echo","paylaod":1}']

    const { stderr, exitCode } = await rig.run('schedules create', args)

    expect(exitCode).toBe(1)
    expect(stderr).toContain('target.paylaod: expected')
  })

  test('is the only way to change a target of another kind', async () => {
    await rig.run('schedules create', ['Other', '--every', '1h', '--target-json', ECHO])

    const { stderr, exitCode } = await rig.run('schedules edit', ['Other', '--timeout', '5s'])

    expect({ stderr, exitCode }).toEqual({
      stderr: 'error: expected --target-json for a target of kind echo, got --timeout\n',
      exitCode: 2,
    })
  })

  test('of a preview checks the target, and shows the slots', async () => {
    const args = ['--cron', '@daily', '--target-json']

    const shown = await rig.ask<SchedulePreview>('schedules preview', [...args, ECHO])
    const refused = await rig.run('schedules preview', [...args, '{"kind":"fax"}'])

    expect(shown).toMatchObject({ target: { kind: 'echo' }, description: expect.any(String) as string })
    expect(refused.stderr).toContain('target.kind: expected one of http, echo, got "fax"')
  })

  test('of an import receives the commands of a crontab', async () => {
    const hook = '{"kind":"echo","payload":{"run":["{command}"]}}'

    const input = '0 9 * * * backup --all "$HOME"\n'
    await rig.run('import', ['-', '--format', 'crontab', '--timezone', 'UTC', '--target-json', hook], { input })

    const { items } = await rig.client.schedules.list({ q: 'backup' })
    expect(items.map(({ target }) => target)).toEqual([{ kind: 'echo', payload: { run: ['backup --all "$HOME"'] } }])
  })
})

test('--run-limit completes the schedule after so many runs, and none removes it', async () => {
  const args = ['Twice', '--every', '1h', '--target-json', ECHO, '--run-limit', '2']
  await rig.run('schedules create', args)
  const { stdout } = await rig.run('schedules get', ['Twice'])
  const plan = await rig.ask<EditPlan>('schedules edit', ['Twice', '--run-limit', 'none', '--dry-run'])

  expect(stdout).toMatch(/^Policy .*complete after 2 runs$/m)
  expect(plan.schedule.policy).not.toHaveProperty('runLimit')
})
