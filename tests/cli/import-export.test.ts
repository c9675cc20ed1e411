import { createClient } from '@carillon/api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { CliRig } from './rig.ts'

interface Outcome {
  readonly created: { place: string; name: string; id: string }[]
  readonly existing: { place: string; name: string; id: string; isSame: boolean }[]
  readonly refused: { place: string; name: string | null; reason: string }[]
  readonly notes: string[]
}

let rig: CliRig

beforeAll(async () => {
  rig = await CliRig.start()
})

afterAll(() => rig[Symbol.asyncDispose]())

/** A project that nobody else uses. */
async function project(name: string) {
  const { key } = await rig.client.keys.create({ project: name, subject: 'user:alice', role: 'admin' })
  return { options: { env: { CARILLON_API_KEY: key } }, schedules: createClient(rig.url, key).schedules }
}

function scheduleOf(name: string, more: object = {}): object {
  return {
    name,
    cadence: { kind: 'cron', expression: '0 9 * * 1-5' },
    target: { kind: 'http', url: rig.target('/ok') },
    ...more,
  }
}

describe('a crontab', () => {
  test('is imported: calls as they are, other commands as calls of a hook, what is left with the reason', async () => {
    const { options, schedules } = await project('crontab')
    const file = rig.write(
      'my.crontab',
      [
        'MAILTO=ops@example.com',
        'CRON_TZ=Europe/Madrid',
        '# Morning digest',
        `0 9 * * 1-5 curl -fsS -X PUT -d '{"list":"a"}' ${rig.target('/ok')} >/dev/null 2>&1`,
        '*/10 * * * * /usr/bin/backup --all | gzip',
        '@reboot /usr/bin/start',
      ].join('\n'),
    )

    const held = await rig.run('import', [file, '--url', rig.target('/ok')], options)
    const plan = await rig.run('import', [file, '--url', rig.target('/ok'), '--dry-run'], options)
    const none = await schedules.list()
    const outcome = await rig.ask<Outcome>('import', [file, '--url', rig.target('/ok'), '--keep-going'], options)
    const { items } = await schedules.list()

    expect(held).toMatchObject({
      exitCode: 1,
      stdout: expect.stringMatching(
        /line 6: .*@reboot names no time.*\n0 created, 0 already there, 1 refused\n$/s,
      ) as string,
    })
    expect(held.stderr).toMatch(/line 1: MAILTO is ignored.*\nnothing was imported/)
    expect(plan.stdout).toMatch(
      /^WHERE +NAME +WHEN +NEXT +WHAT\nline 4 +Morning digest +At 09:00 on Monday through Friday, in Europe\/Madrid +in /,
    )
    expect(none.items).toEqual([])
    expect(outcome.created.map(({ place, name }) => `${place}: ${name}`).toSorted()).toEqual([
      'line 4: Morning digest',
      'line 5: /usr/bin/backup --all | gzip',
    ])
    expect(outcome.refused).toMatchObject([{ place: 'line 6' }])
    expect(items.find(({ name }) => name === 'Morning digest')).toMatchObject({
      cadence: { kind: 'cron', expression: '0 9 * * 1-5', timezone: 'Europe/Madrid' },
      target: { kind: 'http', method: 'PUT', payload: { list: 'a' } },
    })
    expect(items.find(({ name }) => name !== 'Morning digest')?.target).toMatchObject({
      method: 'POST',
      payload: { command: '/usr/bin/backup --all | gzip' },
    })
  })
})

describe('an import', () => {
  test('of the same file again makes nothing twice, but again what was deleted since', async () => {
    const { options, schedules } = await project('twice')
    const input = JSON.stringify([scheduleOf('a'), scheduleOf('b'), scheduleOf('b')])

    const first = await rig.ask<Outcome>('import', ['-'], { ...options, input })
    const second = await rig.ask<Outcome>('import', ['-'], { ...options, input })
    const [deleted] = first.created.filter(({ name }) => name === 'a')
    await schedules.delete(deleted?.id ?? '')
    const third = await rig.ask<Outcome>('import', ['-'], { ...options, input })
    const { items } = await schedules.list()

    expect(first).toMatchObject({ created: [{}, {}, {}], existing: [], refused: [] })
    expect(second).toMatchObject({ created: [], existing: [{ isSame: true }, { isSame: true }, { isSame: true }] })
    expect(third).toMatchObject({ created: [{ name: 'a' }], existing: [{ name: 'b' }, { name: 'b' }] })
    expect(items.map(({ name }) => name).toSorted()).toEqual(['a', 'b', 'b'])
  })

  test('leaves a schedule of the same name as it is, and says that it may differ', async () => {
    const { options } = await project('differs')
    await rig.ask('import', ['-'], { ...options, input: JSON.stringify([scheduleOf('a')]) })

    const { stdout, exitCode } = await rig.run('import', ['-', '--format', 'yaml'], {
      ...options,
      input: `- name: a\n  cadence: { kind: cron, expression: "@hourly" }\n  target: { kind: http, url: ${rig.target('/ok')} }\n`,
    })

    expect({ stdout, exitCode }).toEqual({
      stdout:
        'line 1: "a": a schedule of this name is there, which may differ: it stays as it is\n0 created, 1 already there, 0 refused\n',
      exitCode: 0,
    })
  })

  test('that the service refuses in part names the line and the field, and makes nothing', async () => {
    const { options, schedules } = await project('refused')
    const bad = scheduleOf('bad', { cadence: { kind: 'cron', expression: '61 * * * *' } })
    const input = [scheduleOf('good'), bad].map((schedule) => JSON.stringify(schedule)).join('\n')

    const { stdout, exitCode } = await rig.run('import', ['-'], { ...options, input })
    const { items } = await schedules.list()

    expect(exitCode).toBe(1)
    expect(stdout).toMatch(
      /^line 2: "bad": refused: cadence\.expression: .*"61".*\n0 created, 0 already there, 1 refused\n$/,
    )
    expect(items).toEqual([])
  })

  test('goes on where only a target is refused, and says which', async () => {
    const { options } = await project('targets')
    const bad = scheduleOf('bad', { target: { kind: 'http', url: 'http://nowhere.example/' } })

    const outcome = await rig.ask<Outcome>('import', ['-'], {
      ...options,
      input: JSON.stringify([scheduleOf('good'), bad]),
    })

    expect(outcome.created).toMatchObject([{ name: 'good' }])
    expect(outcome.refused).toMatchObject([
      { place: 'schedules[1]', name: 'bad', reason: expect.stringContaining('nowhere.example') as string },
    ])
  })
})

test('what is exported is imported elsewhere as it was: the same is exported from there', async () => {
  const [{ options: from }, { options: to }] = [await project('from'), await project('to')]
  const schedules = [
    scheduleOf('plain'),
    scheduleOf('朝 ☕', {
      cadence: { kind: 'frequency', frequency: 'weekly', dayOfWeek: 1, timeOfDay: '09:00', timezone: 'Asia/Tokyo' },
    }),
    scheduleOf('paused', {
      paused: { reason: 'the provider is down' },
      policy: { overlap: 'queue', retry: { maxAttempts: 3 } },
    }),
    scheduleOf('skips', {
      cadence: { kind: 'interval', every: 'P1D', startAt: '2098-01-01T00:00:00Z' },
      skippedSlots: ['2098-01-02T00:00:00.000Z'],
    }),
    scheduleOf('every', {
      cadence: { kind: 'interval', every: 'PT15M' },
      target: { kind: 'http', url: rig.target('/ok'), headers: { 'X-A': 'b' }, payload: { x: [1, null] } },
    }),
  ]
  await rig.ask('import', ['-'], { ...from, input: JSON.stringify({ schedules }) })

  const exported = await rig.run('export', [], from)
  const imported = await rig.run('import', ['-'], { ...to, input: exported.stdout })
  const yaml = await rig.run('export', ['--format', 'yaml'], to)
  const again = await rig.run('export', [], to)
  const asYaml = await rig.ask<Outcome>('import', ['-', '--format', 'yaml'], { ...from, input: yaml.stdout })

  expect(imported.stdout).toBe('5 created, 0 already there, 0 refused\n')
  expect(again.stdout).toBe(exported.stdout)
  expect(JSON.parse(exported.stdout)).toMatchObject({
    schedules: [
      { name: 'every' },
      { name: 'paused', paused: { reason: 'the provider is down' } },
      { name: 'plain' },
      { name: 'skips', skippedSlots: ['2098-01-02T00:00:00.000Z'] },
      { name: '朝 ☕' },
    ],
  })
  expect(exported.stdout).not.toMatch(/"(id|revision|runCount|createdAt|tenant)"/)
  expect(asYaml).toMatchObject({
    created: [],
    existing: Array.from({ length: 5 }, () => ({ isSame: true })),
    refused: [],
  })
})
