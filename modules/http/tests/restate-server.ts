import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import { findRestate } from './restate-binary.ts'

export { FETCH_LIMIT_MS } from './restate-binary.ts'

export interface RestateServer extends AsyncDisposable {
  /** The URL under which services are called: `<ingressUrl>/<service>/<handler>`. */
  readonly ingressUrl: string
  readonly adminUrl: string
  /** Registers the services of an endpoint. */
  register(serviceUrl: string): Promise<void>
}

/**
 * A real Restate from npm, on ports that the system chooses and in a folder of its own, so several can run side by side. It is ready when
 * this resolves.
 */
export async function startRestate(): Promise<RestateServer> {
  const folder = await mkdtemp(join(tmpdir(), 'carillon-restate-'))
  const server = spawn(await findRestate(), ['--no-logo', '--listen-mode', 'tcp', '--base-dir', folder], {
    env: {
      ...process.env,
      RESTATE_USE_RANDOM_PORTS: 'true',
      RESTATE_BIND_IP: '127.0.0.1',
      RESTATE_DISABLE_TELEMETRY: 'true',
      RESTATE_ADMIN__DISABLE_WEB_UI: 'true',
      RESTATE_LOG_FORMAT: 'json',
      RESTATE_LOG_FILTER: 'warn,restate=info',
      // With one partition and little memory it starts in half a second.
      RESTATE_DEFAULT_NUM_PARTITIONS: '1',
      RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE: '64MB',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  // A test that is interrupted leaves no server behind.
  const kill = (): boolean => server.kill('SIGKILL')
  process.once('exit', kill)
  const stop = async (): Promise<void> => {
    process.off('exit', kill)
    // Its data is temporary, so no orderly shutdown is needed.
    if (server.exitCode === null && server.signalCode === null && kill()) await once(server, 'exit')
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const { ingressPort, adminPort } = await portsOf(server)
    const adminUrl = `http://127.0.0.1:${adminPort}`
    return {
      ingressUrl: `http://127.0.0.1:${ingressPort}`,
      adminUrl,
      register: (serviceUrl) => register(adminUrl, serviceUrl),
      [Symbol.asyncDispose]: stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

interface LogLine {
  readonly fields?: { readonly message?: string }
  readonly span?: { readonly server_name?: string; readonly 'server.port'?: number }
}

/** Reads the log until a call is possible: both ports are open, and the one partition has a leader. */
function portsOf(server: ChildProcess): Promise<{ ingressPort: number; adminPort: number }> {
  const { stdout, stderr } = server
  if (stdout === null || stderr === null) throw new Error('expected pipes')
  const { promise, resolve, reject } = Promise.withResolvers<{ ingressPort: number; adminPort: number }>()
  const tail: string[] = []
  const ports = new Map<string, number>()
  let hasLeader = false

  function read(line: string): void {
    tail.push(line)
    if (tail.length > 20) tail.shift()
    const entry = parseLine(line)
    const { server_name: name, 'server.port': port } = entry?.span ?? {}
    if (name !== undefined && port !== undefined) ports.set(name, port)
    hasLeader ||= entry?.fields?.message?.includes('became Leader') === true
    const ingressPort = ports.get('http-ingress-server')
    const adminPort = ports.get('admin-api-server')
    if (hasLeader && ingressPort !== undefined && adminPort !== undefined) resolve({ ingressPort, adminPort })
  }

  // Reads to the end, even once the server is ready: a full pipe would block it.
  createInterface({ input: stdout }).on('line', read)
  createInterface({ input: stderr }).on('line', read)
  server.once('error', reject)
  server.once('exit', () => reject(new Error(`expected Restate to start, but it ended:\n${tail.join('\n')}`)))
  return promise
}

function parseLine(line: string): LogLine | undefined {
  try {
    return JSON.parse(line) as LogLine
  } catch {
    return undefined
  }
}

async function register(adminUrl: string, serviceUrl: string): Promise<void> {
  const response = await fetch(`${adminUrl}/deployments`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ uri: serviceUrl }),
  })
  if (!response.ok) throw new Error(`expected Restate to take ${serviceUrl}, but got: ${await response.text()}`)
}
