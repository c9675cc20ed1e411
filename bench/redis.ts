import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

import { nowMs, until } from './clock.ts'

export interface BenchRedis extends AsyncDisposable {
  readonly url: string
  /** Deletes all data. */
  empty(): Promise<void>
}

const INSTALL_PATIENCE_MS = 180_000
const START_PATIENCE_MS = 10_000
const LOOK_EVERY_MS = 50
/** Debian runs this program before it starts a service. The exit code 101 forbids the start. */
const SERVICE_POLICY = '/usr/sbin/policy-rc.d'

/**
 * Starts a Redis for this run, configured as in BullMQ's production guide: a log that is synced once a second, and no eviction. Undefined
 * if there is no Redis and none can be installed.
 */
export async function startRedis(): Promise<BenchRedis | undefined> {
  const program = findOnPath('redis-server') ?? (await installRedis())
  if (program === undefined) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'carillon-bench-redis-'))
  const port = await findFreePort()
  const server = spawn(program, settingsOf(port, folder), { stdio: 'ignore' })
  const end = async (): Promise<void> => {
    await endProcess(server)
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await waitForAnswer(server, port)
  } catch (error) {
    await end()
    throw error
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    async empty() {
      const answer = await ask(port, 'FLUSHALL SYNC')
      if (answer !== '+OK') throw new Error(`expected Redis to empty itself, got ${answer}`)
    },
    [Symbol.asyncDispose]: end,
  }
}

function settingsOf(port: number, folder: string): string[] {
  const settings = {
    bind: '127.0.0.1',
    port,
    dir: folder,
    appendonly: 'yes',
    appendfsync: 'everysec',
    // The log makes the data durable. A snapshot, or a rewrite of the log, would fork the server in the middle of a measurement.
    save: '',
    'auto-aof-rewrite-percentage': 0,
    'maxmemory-policy': 'noeviction',
    // How often per second Redis wakes blocked clients, which decides how late a delayed job of BullMQ starts. The default is 10.
    hz: 100,
  }
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])
}

function findOnPath(name: string): string | undefined {
  const files = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, name))
  return files.find((file) => {
    try {
      accessSync(file, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

/** Installs Debian's package, without recommended packages and without starting its service. Undefined if that fails. */
async function installRedis(): Promise<string | undefined> {
  const aptGet = findOnPath('apt-get')
  if (aptGet === undefined || process.getuid?.() !== 0) return undefined
  const permitServices = forbidServices()
  const run = async (...words: string[]): Promise<void> => {
    await promisify(execFile)(aptGet, words, {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      timeout: INSTALL_PATIENCE_MS,
    })
  }
  try {
    await run('update')
    await run('install', '--yes', '--no-install-recommends', 'redis-server')
  } catch {
    return undefined
  } finally {
    permitServices()
  }
  return findOnPath('redis-server')
}

/** Keeps Debian from starting the services that it installs, until the returned function is called. An existing policy is not changed. */
function forbidServices(): () => void {
  if (existsSync(SERVICE_POLICY)) return () => undefined
  const permit = (): void => {
    process.off('exit', permit)
    rmSync(SERVICE_POLICY, { force: true })
  }
  // An interrupted run exits while apt still works. Without this listener the policy would remain, and forbid every later service.
  process.on('exit', permit)
  writeFileSync(SERVICE_POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 })
  return permit
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  // A server that listens on TCP has an address of this shape.
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function waitForAnswer(server: ChildProcess, port: number): Promise<void> {
  const giveUpAt = nowMs() + START_PATIENCE_MS
  let failure: Error | undefined
  server.once('error', (error) => (failure = error))
  while (!(await isAnswered(port))) {
    if (failure !== undefined) throw failure
    if (server.exitCode !== null) throw new Error(`expected Redis to start, got its end with code ${server.exitCode}`)
    if (nowMs() > giveUpAt) throw new Error(`expected Redis to answer within ${START_PATIENCE_MS} ms, got nothing`)
    await until(nowMs() + LOOK_EVERY_MS)
  }
}

/** True if it answers PONG. While Redis loads its log, it accepts connections but answers that it is loading. */
async function isAnswered(port: number): Promise<boolean> {
  try {
    return (await ask(port, 'PING')) === '+PONG'
  } catch {
    return false
  }
}

/** Returns the first line of the answer. */
function ask(port: number, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`${command}\r\n`))
    socket.once('data', (data) => {
      resolve(data.toString().split('\r\n', 1).join(''))
      socket.destroy()
    })
    socket.once('error', reject)
    socket.once('end', () => {
      reject(new Error(`expected an answer to ${command}, got the end of the connection`))
    })
  })
}

async function endProcess(server: ChildProcess): Promise<void> {
  if (server.pid === undefined || server.exitCode !== null || server.signalCode !== null) return
  const ended = once(server, 'exit')
  server.kill('SIGTERM')
  await ended
}
