import type { EditPlan, Schedule, ScheduleInput, SchedulePreview } from '@carillon/api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { startProxy } from './proxy.ts'
import { CliRig } from './rig.ts'

let rig: CliRig

beforeAll(async () => {
  rig = await CliRig.start()
})

afterAll(() => rig[Symbol.asyncDispose]())

function make(name: string, more: Partial<ScheduleInput> = {}): Promise<Schedule> {
  const cadence = { kind: 'cron' as const, expression: '0 9 * * 1-5', timezone: 'Europe/Madrid' }
  return rig.client.schedules.create({ name, cadence, target: { kind: 'http', url: rig.target('/ok') }, ...more })
}

describe('creating a schedule', () => {
  test('prints the schedule with times in its time zone, and nothing else on stdout', async () => {
    const args = ['Digest', '--cron', '0 9 * * 1-5', '--timezone', 'Europe/Madrid', '--url', rig.target('/ok')]

    const { stdout, stderr, exitCode } = await rig.run('schedules create', args)

    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toMatch(/^Name +Digest\nId +[\da-f-]{36}\nState +active\n/)
    expect(stdout).toContain('At 09:00 on Monday through Friday, in Europe/Madrid')
    expect(stdout).toMatch(/Next slot +\d{4}-\d\d-\d\d 09:00:00\+0[12]:00 \(in \d+ (min|h|d)\)/)
  })

  test('sends the values of all options, and --json prints the answer of the server', async () => {
    const flags =
      '--cron @daily --method put --header X-List:a --timeout 45s --overlap queue --missed run_once --deadline 10m ' +
      '--retries 0 --auto-pause 5 --spread 1m --owner user:alice'
    const made = await rig.ask<Schedule>('schedules create', [
      'All flags',
      ...flags.split(' '),
      '--url',
      rig.target('/ok'),
      '--header',
      'X-Of: b: c',
      '--payload',
      '{"list":["a"]}',
    ])

    expect(made).toEqual(await rig.client.schedules.get(made.id))
    expect(made).toMatchObject({
      target: {
        kind: 'http',
        method: 'PUT',
        headers: { 'X-List': 'a', 'X-Of': 'b: c' },
        payload: { list: ['a'] },
        timeoutSeconds: 45,
      },
      policy: {
        overlap: 'queue',
        missed: 'run_once',
        startingDeadlineSeconds: 600,
        retry: { maxAttempts: 1 },
        autoPauseThreshold: 5,
        spreadSeconds: 60,
      },
      ownerSubject: 'user:alice',
    })
  })

  test('with --dry-run shows the schedule, its slots and daylight saving warnings, and creates nothing', async () => {
    const flags = ['Tried', '--cron', '30 2 * * *', '--timezone', 'America/New_York', '--dry-run']
    const sound = [...flags, '--url', rig.target('/ok')]

    const people = await rig.run('schedules create', sound)
    const programs = await rig.ask<SchedulePreview>('schedules create', sound)
    const refused = await rig.run('schedules create', [...flags, '--url', 'nonsense', '--method', 'FROB'])
    const { items } = await rig.client.schedules.list({ q: 'Tried' })

    expect(people).toMatchObject({ exitCode: 0, stderr: 'dry run: nothing was created\n' })
    expect(people.stdout).toMatch(
      /^At 02:30.*New_York\n\nLOCAL +UTC\n(\d{4}-\d\d-\d\d 0[23]:\d\d:00-0[45]:00 .*\n){5}\n.+/,
    )
    expect(programs).toMatchObject({ name: 'Tried', target: { kind: 'http' }, policy: { overlap: 'forbid' } })
    expect(programs.slots).toHaveLength(5)
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/target\.url.*\n.*FROB/) as string })
    expect(items).toEqual([])
  })

  test('reads the schedule from standard input, and creates only one per idempotency key', async () => {
    const body = {
      name: 'Piped',
      cadence: { kind: 'interval', every: 'PT15M', startAt: '2027-01-01T00:00:00Z' },
      target: { kind: 'http', url: rig.target('/ok') },
    }
    const options = { input: JSON.stringify(body) }

    const first = await rig.ask<Schedule>('schedules create', ['--file', '-', '--idempotency-key', 'one'], options)
    const again = await rig.ask<Schedule>('schedules create', ['--file', '-', '--idempotency-key', 'one'], options)

    expect(again.id).toBe(first.id)
    expect(first.cadence).toMatchObject(body.cadence)
  })
})

describe('reading schedules', () => {
  test('prints a page of the list, and the cursor of the next page', async () => {
    await make('Listed one')
    await make('Listed two')

    const page = await rig.ask<{ items: Schedule[]; nextCursor: string }>('schedules list', [
      '--query',
      'listed',
      '--limit',
      '1',
    ])
    const { stdout, stderr } = await rig.run('schedules list', ['--query', 'listed', '--limit', '1'])

    expect(page.items.map(({ name }) => name)).toEqual(['Listed two'])
    expect(stdout).toMatch(
      /^NAME +STATE +WHEN +NEXT +RUNS +FAILED +ID\nListed two +active +At 09:00 .* in \d+ \w+ +0 +0 +[\da-f-]{36}\n$/,
    )
    expect(stderr).toBe(`next page: --cursor ${page.nextCursor}\n`)
  })

  test('finds a schedule by its exact name, with its slots and its history', async () => {
    const { id } = await make('By name')

    expect(await rig.ask('schedules get', ['By name'])).toEqual(await rig.client.schedules.get(id))
    expect(await rig.ask('schedules slots', ['By name', '--limit', '2'])).toEqual(
      await rig.client.schedules.slots(id, { limit: 2 }),
    )
    const run = await rig.client.schedules.run(id)
    const history = await rig.run('schedules history', [id])
    const minuteAndSecond = run.scheduledFor.slice('2026-11-14T09:'.length, '2026-11-14T09:00:00'.length)
    expect(history.stdout).toMatch(
      new RegExp(
        String.raw`^WHEN +CHANGE +BY +REVISION +RUN +NEXT SLOT +REASON\n.* run_requested +service:installation +1 +\S+ \d\d:${minuteAndSecond}`,
      ),
    )
    expect(history.stdout).toMatch(/\n.* created +service:installation +1 +- .*\n$/)
    expect(history.stderr).toBe('')
  })

  test('prints as much of a history as asked for, in as many pages as it takes, and says where it goes on', async () => {
    const { id } = await make('Long history')
    for (let count = 0; count < 4; count += 1) await rig.client.schedules.edit(id, { name: `Name ${count}` })
    interface History {
      readonly items: readonly { readonly revision: number }[]
      readonly nextCursor: string | null
    }
    const revisions = ({ items }: History): number[] => items.map(({ revision }) => revision)

    const { stdout, stderr } = await rig.run('schedules history', [id, '--limit', '2'])
    const first = await rig.ask<History>('schedules history', [id, '--limit', '2'])
    const rest = await rig.ask<History>('schedules history', [id, '--cursor', first.nextCursor ?? ''])
    const whole = await rig.ask<History>('schedules history', [id, '--limit', '1000'])

    expect(stdout.split('\n')).toHaveLength(4)
    expect(stderr).toBe(`next page: --cursor ${first.nextCursor}\n`)
    expect([revisions(first), revisions(rest), rest.nextCursor]).toEqual([[5, 4], [3, 2, 1], null])
    expect([revisions(whole), whole.nextCursor]).toEqual([[5, 4, 3, 2, 1], null])
    expect((await rig.run('schedules history', [id, '--limit', '0'])).exitCode).toBe(1)
  })

  test('refuses a name that several schedules have, and lists their ids', async () => {
    const made = [await make('Twice'), await make('Twice')]

    const { stderr, exitCode } = await rig.run('schedules get', ['Twice'])

    expect(exitCode).toBe(1)
    expect(stderr).toContain(
      'error: expected the name of one schedule, got "Twice", which 2 schedules have: pass an id',
    )
    for (const { id } of made) expect(stderr).toContain(`  ${id}: active, At 09:00`)
  })

  test('suggests similar names if no name is equal', async () => {
    await make('Nightly report')

    const { stderr, exitCode } = await rig.run('schedules get', ['report'])

    expect(exitCode).toBe(1)
    expect(stderr).toContain(
      'expected the id or the exact name of a schedule, got "report": similar names are "Nightly report"',
    )
  })
})

describe('changing schedules', () => {
  test('an edit with --dry-run shows the changed slots, and without it changes them', async () => {
    const { id } = await make('Edited', { target: { kind: 'http', url: rig.target('/ok'), method: 'PUT' } })

    const plan = await rig.ask<EditPlan>('schedules edit', ['Edited', '--cron', '0 8 * * 1-5', '--dry-run'])
    const shown = await rig.run('schedules edit', ['Edited', '--cron', '0 8 * * 1-5', '--dry-run'])
    const unchanged = await rig.client.schedules.get(id)
    const edited = await rig.ask<Schedule>('schedules edit', [
      'Edited',
      '--cron',
      '0 8 * * 1-5',
      '--url',
      rig.target('/fail'),
      '--name',
      'Renamed',
    ])

    expect(plan.added.every(({ local }) => local.includes('T08:00:00'))).toBe(true)
    // The hour of the day decides whether the added or the removed slot comes first.
    expect(shown.stdout).toMatch(/^At 08:00 .*\n\n[+-] /)
    expect(shown.stdout).toMatch(/^[+] .* 08:00:00[+]0[12]:00 {2}in /m)
    expect(shown.stdout).toMatch(/^- .* 09:00:00[+]0[12]:00 {2}in /m)
    expect(shown.stderr).toBe('dry run: nothing was changed\n')
    expect(unchanged).toMatchObject({ revision: 1, name: 'Edited' })
    expect(edited).toMatchObject({
      revision: 2,
      name: 'Renamed',
      cadence: { timezone: 'Europe/Madrid' },
      target: { method: 'PUT', url: rig.target('/fail') },
    })
  })

  test('--auth names a secret, other edits keep it, and the value none removes it', async () => {
    await rig.client.secrets.put('webhook-key', { value: 'canary' })
    const flags = ['--cron', '@daily', '--url', rig.target('/ok')]

    const made = await rig.ask<Schedule>('schedules create', ['Signed', ...flags, '--auth', 'hmac:webhook-key'])
    const moved = await rig.ask<Schedule>('schedules edit', ['Signed', '--url', rig.target('/fail')])
    const other = await rig.ask<Schedule>('schedules edit', ['Signed', '--auth', 'bearer:webhook-key'])
    const unknown = await rig.run('schedules edit', ['Signed', '--auth', 'bearer:missing', '--json'])
    const without = await rig.ask<Schedule>('schedules edit', ['Signed', '--auth', 'none'])

    expect(made.target).toMatchObject({ auth: { kind: 'hmac', secretRef: 'webhook-key' } })
    expect(moved.target).toMatchObject({ url: rig.target('/fail'), auth: { kind: 'hmac', secretRef: 'webhook-key' } })
    expect(other.target).toMatchObject({ url: rig.target('/fail'), auth: { kind: 'bearer', secretRef: 'webhook-key' } })
    expect(JSON.parse(unknown.stderr)).toMatchObject({ error: { errors: [{ field: 'target.auth.secretRef' }] } })
    expect(without.target).toMatchObject({ url: rig.target('/fail'), auth: { kind: 'none' } })
  })

  test('an edit does not overwrite a concurrent change', async () => {
    const { id } = await make('Contended')
    await using meanwhile = await startProxy(rig.url, async ({ method }) => {
      if (method === 'PATCH') await rig.client.schedules.edit(id, { name: 'Theirs' })
    })

    const { stderr, exitCode } = await rig.run('schedules edit', [id, '--name', 'Mine'], {
      env: { CARILLON_URL: meanwhile.url },
    })

    expect(exitCode).toBe(1)
    expect(stderr).toContain('another client changed it in the meantime: look at it, and try again')
    expect((await rig.client.schedules.get(id)).name).toBe('Theirs')
  })

  test('an edit without changes is a usage error', async () => {
    const { id } = await make('Left alone')

    const { stderr, exitCode } = await rig.run('schedules edit', [id])

    expect({ stderr, exitCode }).toEqual({
      stderr: 'error: expected an option that changes something, got none\n',
      exitCode: 2,
    })
  })

  test('a pause has a reason, and a resume shows the next slot', async () => {
    const { id } = await make('Paused')

    const paused = await rig.run('schedules pause', ['Paused', '--reason', 'the provider is down'])
    const { pausedReason } = await rig.client.schedules.get(id)
    const resumed = await rig.run('schedules resume', ['Paused'])
    const again = await rig.run('schedules resume', ['Paused', '--json'])

    expect(paused.stdout).toBe('Paused is paused\n')
    expect(pausedReason).toBe('the provider is down')
    expect(resumed.stdout).toMatch(/^Paused is active, next slot .* 09:00:00/)
    expect(again).toMatchObject({ exitCode: 1, stdout: '' })
    expect(JSON.parse(again.stderr)).toMatchObject({ error: { code: 'state_conflict', errors: [] } })
  })

  test('skips the next slot and restores it', async () => {
    const { nextSlotAt } = await make('Skipped')

    const skipped = await rig.ask<Schedule>('schedules skip', ['Skipped', 'next'])
    const restored = await rig.ask<Schedule>('schedules restore', ['Skipped', nextSlotAt ?? ''])
    const unknown = await rig.run('schedules skip', ['Skipped', '2027-01-01T00:00:01Z', '--json'])

    expect(skipped.skippedSlots).toEqual([nextSlotAt])
    expect(restored.skippedSlots).toEqual([])
    expect(JSON.parse(unknown.stderr)).toMatchObject({ error: { code: 'slot_not_found' } })
  })

  test('deletes nothing without --yes if there is no terminal', async () => {
    const { id } = await make('Deleted')

    const refused = await rig.run('schedules delete', ['Deleted'])
    const kept = await rig.client.schedules.get(id)
    const deleted = await rig.run('schedules delete', ['Deleted', '--yes', '--json'])

    expect(refused).toEqual({
      stdout: '',
      stderr: 'error: expected --yes, because there is no terminal to ask on: nothing was changed\n',
      exitCode: 2,
    })
    expect(kept.id).toBe(id)
    expect(JSON.parse(deleted.stdout)).toEqual({ id, name: 'Deleted', isDeleted: true })
    await expect(rig.client.schedules.get(id)).rejects.toMatchObject({ code: 'schedule_not_found' })
  })
})

test('previews a cadence with its description, slots and warnings', async () => {
  const { stdout, exitCode } = await rig.run('schedules preview', [
    '--cron',
    '30 2 * * *',
    '--timezone',
    'America/New_York',
    '--from',
    '2027-03-13T12:00:00Z',
    '--count',
    '2',
  ])

  expect(exitCode).toBe(0)
  const lines = stdout.split('\n')
  expect(lines[0]).toBe('At 02:30 every day, in America/New_York')
  expect(lines[3]).toMatch(/^2027-03-14 03:00:00-04:00 {2}2027-03-14T07:00:00.000Z {2}in \d+ d$/)
  expect(stdout).toContain('On 14 March 2027, 02:30 does not exist')
})
