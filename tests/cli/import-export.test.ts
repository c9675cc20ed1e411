import { createClient, type ScheduleInput } from '@carillon/api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { startProxy } from './proxy.ts'
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

/** A project for one test. */
async function project(name: string) {
  const { key } = await rig.client.keys.create({ project: name, subject: 'user:alice', role: 'admin' })
  const client = createClient(rig.url, key)
  return { options: { env: { CARILLON_API_KEY: key } }, client, schedules: client.schedules }
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
  test('is imported: curl becomes an HTTP call, other commands become calls of a hook, and the rest is refused with a reason', async () => {
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
        /line 6: .*expected a time, got @reboot.*\n0 created, 0 already exist, 1 refused\n$/s,
      ) as string,
    })
    expect(held.stderr).toMatch(/line 1: MAILTO is ignored.*\nnothing was imported/)
    expect(plan.stdout).toMatch(
      /^WHERE +NAME +WHEN +NEXT +TARGET\nline 4 +Morning digest +At 09:00 on Monday through Friday, in Europe\/Madrid +in /,
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
  test('of the same file again creates no duplicates, and creates schedules again that were deleted since', async () => {
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

  test('sends one batch, and creates no duplicates if it is repeated after the answer was lost', async () => {
    const { options, schedules } = await project('lost')
    const input = JSON.stringify(Array.from({ length: 30 }, (_, index) => scheduleOf(`s${index}`)))
    const asked: string[] = []
    await using proxy = await startProxy(
      rig.url,
      async ({ method = '', url = '' }) => {
        if (method === 'POST') asked.push(url)
      },
      async ({ url = '' }) => {
        if (url.endsWith('/schedules/batch')) throw new Error('the connection breaks')
      },
    )

    const cut = await rig.run('import', ['-'], { env: { ...options.env, CARILLON_URL: proxy.url }, input })
    const again = await rig.ask<Outcome>('import', ['-'], { ...options, input })

    expect(cut.exitCode).toBe(1)
    expect(asked).toEqual(['/api/v1/schedules/batch/preview', '/api/v1/schedules/batch'])
    expect(again).toMatchObject({ created: [], existing: { length: 30 } })
    expect((await schedules.list({ limit: 100 })).items).toHaveLength(30)
  })

  test('creates the other schedules of a batch if the server refuses one of them only at the create', async () => {
    const { options, schedules, client } = await project('refused-late')
    const { id: grantId } = await client.grants.create({ scopes: ['http:dispatch:*'] })
    const input = JSON.stringify([scheduleOf('a'), scheduleOf('b', { grantId }), scheduleOf('c')])
    await using proxy = await startProxy(rig.url, async ({ url = '' }) => {
      if (url.endsWith('/schedules/batch')) await client.grants.revoke(grantId)
    })

    const { stdout, exitCode } = await rig.run('import', ['-', '--format', 'json'], {
      env: { ...options.env, CARILLON_URL: proxy.url },
      input,
    })

    expect(exitCode).toBe(1)
    expect(stdout).toMatch(/"b": refused: grantId: .*revoked.*\n2 created, 0 already exist, 1 refused\n$/)
    expect((await schedules.list()).items.map(({ name }) => name).toSorted()).toEqual(['a', 'c'])
  })

  test('does not change a schedule with the same name, and notes that it may differ', async () => {
    const { options } = await project('differs')
    await rig.ask('import', ['-'], { ...options, input: JSON.stringify([scheduleOf('a')]) })

    const { stdout, exitCode } = await rig.run('import', ['-', '--format', 'yaml'], {
      ...options,
      input: `- name: a\n  cadence: { kind: cron, expression: "@hourly" }\n  target: { kind: http, url: ${rig.target('/ok')} }\n`,
    })

    expect({ stdout, exitCode }).toEqual({
      stdout:
        'line 1: "a": a schedule with this name already exists and may differ: it is not changed\n0 created, 1 already exist, 0 refused\n',
      exitCode: 0,
    })
  })

  test('with a refused schedule names its line and field, and creates nothing', async () => {
    const { options, schedules } = await project('refused')
    const bad = scheduleOf('bad', { cadence: { kind: 'cron', expression: '61 * * * *' } })
    const input = [scheduleOf('good'), bad].map((schedule) => JSON.stringify(schedule)).join('\n')

    const { stdout, exitCode } = await rig.run('import', ['-'], { ...options, input })
    const { items } = await schedules.list()

    expect(exitCode).toBe(1)
    expect(stdout).toMatch(
      /^line 2: "bad": refused: cadence\.expression: .*"61".*\n0 created, 0 already exist, 1 refused\n$/,
    )
    expect(items).toEqual([])
  })

  test('creates nothing if a policy or target is refused, and a dry run shows every refusal', async () => {
    const { options, schedules } = await project('parts')
    const target = { kind: 'http', url: rig.target('/ok') }
    const input = JSON.stringify([
      scheduleOf('sound'),
      scheduleOf('overlap', { policy: { overlap: 'nope' } }),
      scheduleOf('timeout', { target: { ...target, timeoutSeconds: -1 } }),
      scheduleOf('url', { target: { kind: 'http', url: 'nonsense', method: 'FROB' } }),
    ])

    const plan = await rig.run('import', ['-', '--dry-run'], { ...options, input })
    const real = await rig.run('import', ['-'], { ...options, input })
    const { items: none } = await schedules.list()
    const { created } = await rig.ask<Outcome>('import', ['-', '--keep-going'], { ...options, input })

    expect([plan.exitCode, real.exitCode]).toEqual([1, 1])
    expect(plan.stdout).toMatch(/\n1 would be created, 0 already exist, 3 refused\n$/)
    expect(plan.stdout.split('\n').filter((line) => line.includes('refused:'))).toEqual([
      expect.stringMatching(/^schedules\[1\]: "overlap": refused: policy\.overlap: expected .*"nope"/),
      expect.stringMatching(/^schedules\[2\]: "timeout": refused: target\.timeoutSeconds: .*got -1$/),
      expect.stringMatching(/^schedules\[3\]: "url": refused: target\.url: .*"nonsense"; target\.method: .*FROB/),
    ])
    expect(real.stdout).toMatch(/\n0 created, 0 already exist, 3 refused\n$/)
    expect(none).toEqual([])
    expect(created).toMatchObject([{ name: 'sound' }])
  })

  test.each([
    [
      'a target that the installation does not allow',
      { target: { kind: 'http', url: 'http://nowhere.example/' } },
      'nowhere.example',
    ],
    [
      'a skipped slot that the cadence does not have',
      { skippedSlots: ['2098-01-01T09:01:00Z'] },
      '2098-01-01T09:01:00Z, which is none',
    ],
  ])('creates nothing if there is %s', async (_what, more, reason) => {
    const { options, schedules } = await project(`held-${reason.length}`)
    const input = JSON.stringify([scheduleOf('good'), scheduleOf('bad', more)])

    const { created, refused } = await rig.ask<Outcome>('import', ['-'], { ...options, input })
    const { items } = await schedules.list()

    expect({ created, items }).toEqual({ created: [], items: [] })
    expect(refused).toMatchObject([{ place: 'schedules[1]', reason: expect.stringContaining(reason) as string }])
  })

  test('refuses a crontab with a credential before it creates anything', async () => {
    const { options, schedules } = await project('credentials')
    const url = rig.target('/ok')
    const input = `@daily curl ${url}\n@daily curl -H 'Authorization: x' ${url}\n`

    const { stdout, exitCode } = await rig.run('import', ['-', '--format', 'crontab'], { ...options, input })
    const { items } = await schedules.list()

    expect({ exitCode, items }).toEqual({ exitCode: 1, items: [] })
    expect(stdout).toMatch(
      /line 2: .*refused: target\.headers\.Authorization: .*\n0 created, 0 already exist, 1 refused/,
    )
  })

  test('refuses invalid YAML with the reason of the parser', async () => {
    const levels = Array.from({ length: 9 }, (_, at) => `a${at + 1}: &a${at + 1} [${`*a${at},`.repeat(9)}]`)
    const input = ['a0: &a0 [x]', ...levels, 'schedules: *a9'].join('\n')

    const { stderr, exitCode } = await rig.run('import', ['-', '--format', 'yaml'], { input })

    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/^error: expected YAML, got a text that cannot be read: Excessive alias count[^\n]*\n$/)
  })
})

describe('an import that failed before it paused a schedule', () => {
  const slot = '2098-01-02T00:00:00.000Z'

  /** Creates the schedule, and then fails to pause it. */
  async function broken(name: string) {
    const { options, schedules } = await project(name)
    const input = JSON.stringify([
      scheduleOf('a', {
        cadence: { kind: 'interval', every: 'P1D', startAt: '2098-01-01T00:00:00Z' },
        paused: { reason: 'moving' },
        skippedSlots: [slot],
      }),
    ])
    await using proxy = await startProxy(rig.url, async ({ url = '' }) => {
      if (url.endsWith('/pause')) throw new Error('the service has died')
    })
    const env = { ...options.env, CARILLON_URL: proxy.url }
    const { exitCode, stderr } = await rig.run('import', ['-'], { env, input })
    const [left] = (await schedules.list()).items
    expect({ exitCode, stderr, state: left?.state }).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('expected an answer from a Carillon server') as string,
      state: 'active',
    })
    return { options: { ...options, input }, schedules, id: left?.id ?? '' }
  }

  test('is completed even if a user has requested a run of the schedule since', async () => {
    const { options, schedules, id } = await broken('broken-run')
    await schedules.run(id)

    const { stdout } = await rig.run('import', ['-'], options)

    expect(stdout).toBe('0 created, 1 already exist, 0 refused\n')
    expect(await schedules.get(id)).toMatchObject({ state: 'paused', skippedSlots: [slot] })
  })

  test('is completed with a note if it is repeated, and a third import changes nothing', async () => {
    const { options, schedules, id } = await broken('broken')

    const plan = await rig.run('import', ['-', '--dry-run'], options)
    const planned = await schedules.get(id)
    const again = await rig.run('import', ['-'], options)
    const finished = await schedules.get(id)
    const third = await rig.run('import', ['-'], options)
    const { items } = await schedules.history(id)

    expect(plan.stdout).toMatch(/"a": already exists, from an unfinished import: importing the file again completes it/)
    expect(planned.state).toBe('active')
    expect(again).toEqual({
      stdout: '0 created, 1 already exist, 0 refused\n',
      stderr: 'schedules[0]: "a" was created by an unfinished import and is complete now\n',
      exitCode: 0,
    })
    expect(finished).toMatchObject({ state: 'paused', pausedReason: 'moving', skippedSlots: [slot] })
    expect(third).toEqual({ stdout: '0 created, 1 already exist, 0 refused\n', stderr: '', exitCode: 0 })
    expect(items.map(({ change }) => change)).toEqual(['slot_skipped', 'paused', 'created'])
  })

  test('is not completed if the file is refused', async () => {
    const { options, schedules, id } = await broken('broken-refused')
    const input = JSON.stringify([...(JSON.parse(options.input) as object[]), { name: 'b' }])

    const { exitCode } = await rig.run('import', ['-'], { ...options, input })

    expect(exitCode).toBe(1)
    expect((await schedules.get(id)).state).toBe('active')
  })

  test('is not completed if a user has changed the schedule since', async () => {
    const { options, schedules, id } = await broken('broken-touched')
    await schedules.pause(id, { reason: 'somebody looks at it' })
    await schedules.resume(id)

    const { stdout, exitCode } = await rig.run('import', ['-'], options)

    expect(exitCode).toBe(0)
    expect(stdout).toMatch(
      /"a": a schedule with this name already exists and may differ: it is not changed\n0 created, 1 /,
    )
    expect((await schedules.get(id)).state).toBe('active')
  })
})

test('an export that is imported into another project is exported from there unchanged', async () => {
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

  expect(imported.stdout).toBe('5 created, 0 already exist, 0 refused\n')
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

test('a grant of one schedule is never exported, and a shared grant only with --with-grants', async () => {
  const { options, client } = await project('granted')
  const { id: grantId } = await client.grants.create({ scopes: ['http:dispatch:*'] })
  await client.schedules.create({ ...(scheduleOf('by name') as ScheduleInput), grantId })
  await client.schedules.create(scheduleOf('of its own') as ScheduleInput)

  const plain = await rig.run('export', [], options)
  const withGrants = await rig.run('export', ['--with-grants'], options)

  expect(plain.stdout).not.toContain('grantId')
  expect(plain.stderr).toBe(
    'not exported: shared grants, used by 1 of the schedules; set them again after the import\n',
  )
  expect(withGrants.stderr).toBe('')
  expect(JSON.parse(withGrants.stdout)).toEqual({
    schedules: [
      expect.objectContaining({ name: 'by name', grantId }),
      expect.not.objectContaining({ grantId: expect.anything() as unknown }),
    ],
  })
})
