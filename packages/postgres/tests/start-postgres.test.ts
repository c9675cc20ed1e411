import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'

import { findClaimant, startPostgres } from '../src/index.ts'
import { startInChild } from './child.ts'
import { canBecomeOthers, createFolder, isRoot } from './folder.ts'
import { query } from './query.ts'

// These tests do not depend on durable writes, and initdb is faster without fsync.
const settings = { fsync: 'off' }

function pidOf(dataDir: string): number {
  return Number.parseInt(readFileSync(join(dataDir, 'postmaster.pid'), 'utf8'), 10)
}

/** The watchdog shell of a server. Its last argument is the server's process id. */
function killGuardOf(pid: number): void {
  const guard = readdirSync('/proc').find((name) => {
    const args = /^\d+$/.test(name) ? readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0') : []
    return args.includes(String(pid)) && args.some((arg) => arg.includes('kill -INT'))
  })
  process.kill(Number(guard), 'SIGKILL')
}

test('data survives stops, a kill of the server, and the reuse of its process id', async () => {
  const dataDir = join(createFolder(), 'made/by/start')

  const first = await startPostgres({ dataDir, settings })
  await query(first.url, `create table kept as select 'data' as content`)
  await first.stop()
  await first.stop()
  expect(existsSync(join(dataDir, 'postmaster.pid'))).toBe(false)

  const second = await startPostgres({ dataDir, settings })
  expect(await query(second.url, 'select content from kept')).toEqual({ content: 'data' })
  process.kill(pidOf(dataDir), 'SIGKILL')
  await second.stop()

  const third = await startPostgres({ dataDir, settings })
  expect(await query(third.url, 'select content from kept')).toEqual({ content: 'data' })
  const lock = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8')
  await third.stop()

  const { uid, gid } = statSync(dataDir)
  const stranger = spawn('/bin/sh', ['-c', 'read -r _'], {
    ...(isRoot && { uid, gid }),
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  writeFileSync(join(dataDir, 'postmaster.pid'), lock.replace(/^\d+/, String(stranger.pid)))
  await using fourth = await startPostgres({ dataDir, settings })
  expect(await query(fourth.url, 'select content from kept')).toEqual({ content: 'data' })
  stranger.kill()
})

test('the server listens on loopback only, requires a password, and applies all other settings', async () => {
  const dataDir = createFolder()
  await using postgres = await startPostgres({
    dataDir,
    settings: { ...settings, max_connections: '23', listen_addresses: '*' },
  })

  expect(
    await query(
      postgres.url,
      `select current_setting('listen_addresses') as addresses, current_setting('unix_socket_directories') as sockets,
         current_setting('max_connections') as connections, current_setting('port')::int as port`,
    ),
  ).toEqual({ addresses: '127.0.0.1', sockets: '', connections: '23', port: postgres.port })
  const withoutPassword = new URL(postgres.url)
  withoutPassword.password = 'wrong'
  await expect(query(withoutPassword.href, 'select 1')).rejects.toMatchObject({ code: '28P01' })
  expect(statSync(dataDir).mode & 0o077).toBe(0)
})

test('a directory in use is rejected with the id of its process, and its server keeps running', async () => {
  const dataDir = join(createFolder(), 'data')
  await using postgres = await startPostgres({ dataDir, settings })

  await expect(startPostgres({ dataDir })).rejects.toMatchObject({
    code: 'directory_in_use',
    message: `the data directory ${dataDir} is in use by process ${process.pid}`,
  })
  expect(await query(postgres.url, 'select 1 as one')).toEqual({ one: 1 })

  await expect(startPostgres({ dataDir: join(createFolder(), 'other'), port: postgres.port })).rejects.toMatchObject({
    code: 'port_in_use',
    message: `port ${postgres.port} of 127.0.0.1 is in use by another program`,
  })
})

test('a killed process takes its Postgres with it, and the next process can start at once', async () => {
  const dataDir = join(createFolder(), 'data')
  const { child } = await startInChild(dataDir)
  expect(findClaimant(dataDir)).toBe(child.pid)

  child.kill('SIGKILL')

  await using next = await startPostgres({ dataDir, settings })
  expect(await query(next.url, 'select 1 as one')).toEqual({ one: 1 })
})

test('of two processes that create the same database at once, one does, and the other names it in its error', async () => {
  const dataDir = join(createFolder(), 'data')

  const started = await Promise.all([startInChild(dataDir), startInChild(dataDir)])

  const serving = started.filter(({ said }) => said.startsWith('postgres:'))
  expect(serving).toHaveLength(1)
  expect(started.map(({ said }) => said)).toContain(
    `PostgresError: the data directory ${dataDir} is in use by process ${serving[0]?.child.pid}`,
  )
  expect(await query(serving[0]?.said ?? '', 'select 1 as one')).toEqual({ one: 1 })
  serving[0]?.child.stdin?.end()
  await once(serving[0]?.child ?? process, 'exit')
  expect(findClaimant(dataDir)).toBeUndefined()
})

test.runIf(process.platform === 'linux')(
  'the next start stops a server whose process and watchdog were both killed',
  async () => {
    const dataDir = join(createFolder(), 'data')
    const { child } = await startInChild(dataDir)
    const orphan = pidOf(dataDir)
    killGuardOf(orphan)
    child.kill('SIGKILL')
    await once(child, 'exit')

    await using next = await startPostgres({ dataDir, settings })

    expect(await query(next.url, 'select 1 as one')).toEqual({ one: 1 })
    expect(pidOf(dataDir)).not.toBe(orphan)
  },
)

test.runIf(canBecomeOthers)(
  'an ordinary user can start a server, and root can then serve that user’s data',
  async () => {
    // `daemon` exists on every system.
    const user = { uid: 1, gid: 1 }
    const folder = createFolder()
    chownSync(folder, user.uid, user.gid)
    const dataDir = join(folder, 'data')

    const { child, said: url } = await startInChild(dataDir, { user })
    await query(url, `create table kept as select 'data' as content`)
    child.stdin?.end()
    await once(child, 'exit')

    await using postgres = await startPostgres({ dataDir, settings })
    expect(await query(postgres.url, 'select content from kept')).toEqual({ content: 'data' })
    expect(statSync(join(dataDir, 'postmaster.pid')).uid).toBe(user.uid)
  },
)

test('a partly created database of a process that died is created again', async () => {
  const dataDir = createFolder()
  mkdirSync(join(dataDir, '.initialising/base'), { recursive: true })
  mkdirSync(join(dataDir, 'global'))

  await using postgres = await startPostgres({ dataDir, settings })

  expect(await query(postgres.url, 'select 1 as one')).toEqual({ one: 1 })
  expect(existsSync(join(dataDir, '.initialising'))).toBe(false)
})
