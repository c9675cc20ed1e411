import { ADMIN_KEY_PHRASE, type AuditReport, type Grant, type NewApiKey } from '@carillon/api'
import { createDatabase } from '@carillon/core/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { CliRig } from './rig.ts'

let rig: CliRig

beforeAll(async () => {
  rig = await CliRig.start()
})

afterAll(() => rig[Symbol.asyncDispose]())

test('keys are created, shown once, listed and revoked', async () => {
  const made = await rig.run('keys create', ['--project', 'default', '--subject', 'user:alice'])
  const [, key = ''] = /^Key +(\S+)$/m.exec(made.stdout) ?? []
  const [, id = ''] = /^Id +(\S+)$/m.exec(made.stdout) ?? []

  const asMember = { env: { CARILLON_API_KEY: key } }
  const read = await rig.run('schedules list', ['--json'], asMember)
  const change = await rig.run('grants create', ['--scope', 'http:dispatch:*'], asMember)
  const list = await rig.run('keys list')
  const revoked = await rig.run('keys revoke', [id])
  const after = await rig.run('schedules list', [], asMember)

  expect(made.stderr).toBe('save the key now: it cannot be shown again\n')
  expect(read.exitCode).toBe(0)
  expect(change).toMatchObject({ exitCode: 1, stdout: '' })
  expect(change.stderr).toContain('the key comes from CARILLON_API_KEY: use a key with the role admin')
  expect(list.stdout).toMatch(
    new RegExp(`^KEY +SUBJECT +ROLE +CREATED +REVOKED +ID\n\\S+… +user:alice +member +\\S+Z +- +${id}\n$`),
  )
  expect(list.stdout).not.toContain(key)
  expect(revoked.stdout).toMatch(/^key \S+… of user:alice is revoked\n$/)
  expect(after.exitCode).toBe(1)
  expect(after.stderr).toContain('the key comes from CARILLON_API_KEY: correct it')
})

test('a key of another project cannot see this one (I9)', async () => {
  const { key } = await rig.ask<NewApiKey>('keys create', [
    '--project',
    'other',
    '--subject',
    'user:bob',
    '--role',
    'admin',
  ])
  await rig.client.schedules.create({
    name: 'Ours',
    cadence: { kind: 'cron', expression: '@daily' },
    target: { kind: 'http', url: rig.target('/ok') },
  })

  const { stderr, exitCode } = await rig.run('schedules get', ['Ours', '--json'], { env: { CARILLON_API_KEY: key } })

  expect(exitCode).toBe(1)
  expect(JSON.parse(stderr)).toMatchObject({ error: { code: 'schedule_not_found' } })
})

test('grants are created, listed and revoked', async () => {
  const flags = [
    '--scope',
    'http:dispatch:a',
    '--scope',
    'http:dispatch:b',
    '--subject',
    'user:alice',
    '--expires-at',
    '2099-01-01 00:00:00Z',
  ]
  const given = await rig.ask<Grant>('grants create', flags)
  const list = await rig.run('grants list')
  const revoked = await rig.ask<Grant>('grants revoke', [given.id])

  expect(given).toMatchObject({
    scopes: ['http:dispatch:a', 'http:dispatch:b'],
    subject: 'user:alice',
    expiresAt: '2099-01-01T00:00:00.000Z',
  })
  expect(list.stdout).toMatch(
    new RegExp(`^user:alice +http:dispatch:a, http:dispatch:b +2099-01-01T00:00:00.000Z +- +- +${given.id}$`, 'm'),
  )
  expect(revoked.revokedBy).toBe('service:installation')
})

test('audit --run starts an audit, waits for it and shows the report', async () => {
  const report = await rig.ask<AuditReport>('audit', ['--run', '--timeout', '25s'])
  const after = await rig.run('audit')
  const { key } = await rig.client.keys.create({ project: 'default', subject: 'user:reads', role: 'member' })
  const seen = await rig.run('audit', [], { env: { CARILLON_API_KEY: key } })

  expect(report).toMatchObject({ latest: { findings: 0 }, findings: [] })
  expect(after.stdout).toMatch(/^Findings +0, 0 repaired$/m)
  expect(seen).toMatchObject({ stderr: '', exitCode: 0 })
  expect(seen.stdout).toMatch(
    /^Audited +\S+ to \S+\nAudited until +.*\nCompleted +.*\nFindings +0 in this project, 0 repaired\n$/,
  )
})

test('an audit with findings ends with exit code 5, and with the admin key also for findings in other projects', async () => {
  const elsewhere = { tenant: 'acme', project: 'kitchen' }
  const { key } = await rig.client.keys.create({ ...elsewhere, subject: 'user:bo', role: 'admin' })
  const other = { env: { CARILLON_API_KEY: key } }
  const cron = ['Yearly', '--cron', '0 0 1 1 *', '--url', 'http://127.0.0.1/ok', '--json']
  const { id } = JSON.parse((await rig.run('schedules create', cron, other)).stdout) as { id: string }
  const renumber = (from: number, to: number): Promise<unknown> =>
    rig.database.pool.query(
      'update carillon.schedule_revisions set revision = $3 where schedule_id = $1 and revision = $2',
      [id, from, to],
    )
  await renumber(1, 2)

  const found = await rig.run('audit', ['--run', '--timeout', '50s'])
  const shown = await rig.run('audit', [], other)
  await renumber(2, 1)
  const again = await rig.run('audit', ['--run', '--timeout', '50s'])

  expect(found).toMatchObject({
    exitCode: 5,
    stderr: 'findings in other projects: 1; `carillon doctor` names the projects\n',
  })
  expect(found.stdout).toMatch(/^Findings +1, 0 repaired$/m)
  expect(shown).toMatchObject({ exitCode: 5, stderr: '' })
  expect(shown.stdout).toContain('revision_missing')
  expect(again).toMatchObject({ exitCode: 0, stderr: '' })
})

test('a lost slot makes audits end with exit code 5 for a day, even after it is repaired', async () => {
  const id = '00000000-0000-7000-8000-000000000001'
  const endedAgo = async (age: string): Promise<number | null> => {
    await rig.database.pool.query(
      `with audit as (
         insert into carillon.audits (id, is_whole, audited_from, audited_to, started_at, completed_at, schedule_count, slot_count,
           unreadable_count, truncated_count, finding_count, repaired_count, lost_count)
         values ($1, false, now(), now(), now() - $2::interval, now() - $2::interval, 0, 0, 0, 0, 1, 1, 1)
       )
       insert into carillon.audit_findings (audit_id, ordinal, kind, tenant_id, project_id, scheduled_for, detail, is_repaired, found_at)
       values ($1, 1, 'slot_lost', 'default', 'default', now(), 'left no line: run it by hand', true, now() - $2::interval)`,
      [id, age],
    )
    const { exitCode } = await rig.run('audit')
    await rig.database.pool.query('delete from carillon.audits where id = $1', [id])
    return exitCode
  }
  await rig.run('audit', ['--run', '--timeout', '50s'])

  expect([await endedAgo('23 hours'), await endedAgo('25 hours')]).toEqual([5, 0])
})

test('an admin or member that calls an operation of the installation gets an error that asks for the admin key', async () => {
  const of = { project: 'default', subject: 'user:dana' }
  const admin = await rig.client.keys.create({ ...of, role: 'admin' })
  const member = await rig.client.keys.create({ ...of, role: 'member' })
  const [asAdmin, asMember] = [admin, member].map(({ key }) => ({ env: { CARILLON_API_KEY: key } }))
  const elsewhere = ['--tenant', 'acme', '--project', 'web', '--subject', 'user:eve']

  const refused = [
    await rig.run('tenants set', ['default', '--minimum-seconds', '300'], asAdmin),
    await rig.run('tenants set', ['default', '--minimum-seconds', '300'], asMember),
    await rig.run('keys create', elsewhere, asAdmin),
    await rig.run('audit --run', [], asAdmin),
    await rig.run('audit --run', [], asMember),
  ]

  for (const { stderr, exitCode } of refused) {
    expect(exitCode).toBe(1)
    expect(stderr).toContain(`the key comes from CARILLON_API_KEY: use ${ADMIN_KEY_PHRASE}`)
    expect(stderr).not.toContain('role admin')
  }
})

describe('the database', () => {
  test('is checked without a running server, and is healthy', async () => {
    const { stdout, exitCode } = await rig.run('doctor', [], {
      env: { DATABASE_URL: rig.database.url, CARILLON_URL: 'http://127.0.0.1:1' },
    })

    expect(exitCode).toBe(0)
    expect(stdout).toMatch(/^(ok|warning) +database: Postgres \d+/)
    expect(
      stdout
        .trimEnd()
        .split('\n')
        .every((line) => /^(ok|warning) +\w+: \S/.test(line)),
    ).toBe(true)
  })

  test('that cannot be reached ends doctor with exit code 5', async () => {
    const { stdout, stderr, exitCode } = await rig.run('doctor', ['--json'], {
      env: { DATABASE_URL: 'postgres://127.0.0.1:1/none' },
    })

    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 5 })
    expect(JSON.parse(stdout)).toMatchObject({ checks: [{ name: 'database', status: 'failed' }] })
  })

  test('is migrated, and migrations are listed, and reverted after confirmation', async () => {
    await using database = await createDatabase({ content: 'empty' })
    const options = { env: { DATABASE_URL: database.url } }

    const pending = await rig.run('migrate status', [], options)
    const up = await rig.ask<{ applied: string[] }>('migrate up', [], options)
    const unconfirmed = await rig.run('migrate down', ['--to', '1'], options)
    const down = await rig.run('migrate down', ['--to', '1', '--yes'], options)
    const mixed = await rig.run('migrate status', [], options)

    expect(pending.stdout).toMatch(/^(pending {2}\d{4}_\w+\n)+$/)
    expect(up.applied[0]).toBe('0001_schedules_and_ledger')
    expect(unconfirmed.exitCode).toBe(2)
    expect(down.stdout).toMatch(/^(reverted \d{4}_\w+\n)+$/)
    expect(mixed.stdout).toMatch(/^applied {2}0001_schedules_and_ledger\n(pending {2}\d{4}_\w+\n)+$/)
  })
})
