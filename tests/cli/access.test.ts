import type { Grant, Member, PurgeCounts, Secret, Tenant } from '@carillon/api'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { CliRig } from './rig.ts'

let rig: CliRig

beforeAll(async () => {
  rig = await CliRig.start()
})

afterAll(() => rig[Symbol.asyncDispose]())

test('a grant that expires soon has a warning in the list, and can be renewed', async () => {
  const expiresAt = new Date(Date.now() + 86_400_000).toISOString()
  const { id } = await rig.client.grants.create({ scopes: ['http:dispatch:*'], subject: 'user:alice', expiresAt })

  const list = await rig.run('grants list')
  const renewed = await rig.run('grants renew', [id, '--expires-at', '2099-01-01T00:00:00Z'])
  const neither = await rig.run('grants renew', [id])
  const got = await rig.ask<Grant>('grants get', [id])

  expect(list.stdout).toMatch(new RegExp(`^user:alice +http:dispatch:\\* +${expiresAt} +expires soon +- +${id}$`, 'm'))
  expect(renewed.stdout).toBe(`grant ${id} of user:alice expires at 2099-01-01T00:00:00.000Z\n`)
  expect(neither).toMatchObject({ exitCode: 2, stdout: '' })
  expect(got).toMatchObject({ id, expiresAt: '2099-01-01T00:00:00.000Z', warning: null })
})

test('members are added, removed and listed, and the key of a removed member is refused', async () => {
  const { key } = await rig.client.keys.create({ project: 'default', subject: 'user:bob', role: 'admin' })

  const put = await rig.ask<Member>('members put', ['user:bob', '--role', 'member'])
  const removed = await rig.run('members remove', ['user:bob'])
  const unlisted = await rig.ask<Member>('members remove', ['user:never-listed'])
  const list = await rig.run('members list')
  const refused = await rig.run('schedules list', ['--json'], { env: { CARILLON_API_KEY: key } })

  expect(put).toMatchObject({ subject: 'user:bob', role: 'member', removedAt: null })
  expect(removed.stdout).toMatch(/^user:bob is removed/)
  expect(unlisted).toMatchObject({ subject: 'user:never-listed', removedBy: 'service:installation' })
  expect(list.stdout).toMatch(/^user:bob +- +\S+Z +service:installation +\S+Z$/m)
  expect(refused.exitCode).toBe(1)
  expect(JSON.parse(refused.stderr)).toMatchObject({ error: { code: 'forbidden' } })
})

describe('secrets', () => {
  test('are stored from standard input or a file, listed without their values, and deleted', async () => {
    const file = rig.write('key.txt', 'from-a-file\n')

    const first = await rig.run('secrets put', ['token'], { input: 'from-stdin\n' })
    const second = await rig.ask<Secret>('secrets put', ['token', '--value-file', file])
    const list = await rig.run('secrets list')
    const unconfirmed = await rig.run('secrets delete', ['token'])
    const deleted = await rig.run('secrets delete', ['token', '--yes'])

    expect(first.stdout).toBe('secret token is stored as version 1\n')
    expect(second).toMatchObject({ name: 'token', version: 2 })
    expect(list.stdout).toMatch(/^NAME +VERSION +CHANGED +BY\ntoken +2 +\S+Z +service:installation\n$/)
    expect(unconfirmed.exitCode).toBe(2)
    expect(deleted.stdout).toBe('secret token is deleted\n')
    for (const { stdout, stderr } of [first, list, deleted]) expect(stdout + stderr).not.toMatch(/from-(stdin|a-file)/)
  })

  test('are re-encrypted with a new key, and a secret that no key decrypts is reported', async () => {
    await rig.run('secrets put', ['kept'], { input: 'kept-value' })
    const [old, next] = [7, 8].map((byte) => Buffer.alloc(32, byte).toString('base64'))
    const rotate = (keys: string) =>
      rig.run('secrets rotate', [], { env: { DATABASE_URL: rig.database.url, CARILLON_SECRETS_KEY: keys } })

    const undecrypted = await rotate(next ?? '')
    const rotated = await rotate(`${next},${old}`)
    const again = await rotate(next ?? '')

    expect(undecrypted.stdout).toContain('no key decrypts default/default/kept: store it again\n')
    expect(undecrypted.exitCode).toBe(5)
    expect(rotated).toMatchObject({ exitCode: 0, stdout: 'secrets re-encrypted with the first key: 1\n' })
    expect(again).toMatchObject({ exitCode: 0, stdout: 'secrets re-encrypted with the first key: 0\n' })
    expect([undecrypted, rotated].map(({ stdout, stderr }) => stdout + stderr).join('')).not.toContain('kept-value')
  })

  test('with several lines are refused, and the error does not show the value', async () => {
    const { stderr, exitCode } = await rig.run('secrets put', ['token'], { input: 'canary\n7400\n' })

    expect(exitCode).toBe(1)
    expect(stderr).toContain('value: expected a text of 1 to 8192 characters, none of them a control character')
    expect(stderr).not.toContain('canary')
  })
})

test('the limits of a tenant are set one by one, and the others keep their values', async () => {
  const first = await rig.ask<Tenant>('tenants set', [
    'acme',
    '--max-schedules-per-user',
    '7',
    '--allowed-hosts',
    'a,b',
  ])
  const second = await rig.ask<Tenant>('tenants set', [
    'acme',
    '--allowed-hosts',
    'default',
    '--minimum-seconds',
    '300',
  ])
  const shown = await rig.run('tenants get', ['acme'])
  const nothing = await rig.run('tenants set', ['acme'])

  expect(first).toMatchObject({ maxSchedulesPerUser: 7, minimumSeconds: null, allowedHosts: ['a', 'b'] })
  expect(second).toMatchObject({ maxSchedulesPerUser: 7, minimumSeconds: 300, allowedHosts: null })
  expect(shown.stdout).toMatch(/^Schedules per user +7$/m)
  expect(shown.stdout).toMatch(/^Allowed hosts +default of the installation$/m)
  expect(nothing.exitCode).toBe(2)
})

test('a project is deleted, and purged only if its name is confirmed', async () => {
  const { key } = await rig.client.keys.create({ project: 'garden', subject: 'user:bob', role: 'admin' })
  const options = { env: { CARILLON_API_KEY: key } }
  const create = ['Beat', '--cron', '@daily', '--url', rig.target('/ok')]
  await rig.run('schedules create', create, options)

  const tooEarly = await rig.run('project purge', ['garden', '--confirm', 'garden'], options)
  const deleted = await rig.run('project delete', ['garden', '--yes'], options)
  const preview = await rig.ask<PurgeCounts>('project purge', ['garden', '--dry-run'], options)
  const unconfirmed = await rig.run('project purge', ['garden'], options)
  const mistyped = await rig.run('project purge', ['garden', '--confirm', 'Garden'], options)
  const purged = await rig.ask<PurgeCounts>('project purge', ['garden', '--confirm', 'garden'], options)

  expect(tooEarly.stderr).toContain("delete the project's schedules first")
  expect(deleted.stdout).toBe('1 schedule was deleted\n')
  expect(preview).toMatchObject({ schedules: 1, grants: 1 })
  expect([unconfirmed.exitCode, mistyped.exitCode]).toEqual([2, 2])
  expect(unconfirmed.stderr).toMatch(/^this will be removed permanently:\nSchedules +1$/m)
  expect(purged).toEqual(preview)
})
