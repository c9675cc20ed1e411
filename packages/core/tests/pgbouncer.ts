import { execFileSync, spawn } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The path of PgBouncer; undefined if it is not installed. */
export function findPgBouncer(): string | undefined {
  for (const path of ['pgbouncer', '/usr/sbin/pgbouncer', '/usr/bin/pgbouncer']) {
    try {
      execFileSync(path, ['--version'], { stdio: 'ignore' })
      return path
    } catch {
      // Not at this path.
    }
  }
  return undefined
}

/** A PgBouncer with one connection to the database, which it lends per transaction. It rejects settings of a client. */
export class PgBouncer implements AsyncDisposable {
  readonly url: string
  readonly #process: ReturnType<typeof spawn>
  readonly #folder: string

  private constructor(url: string, process: ReturnType<typeof spawn>, folder: string) {
    this.url = url
    this.#process = process
    this.#folder = folder
  }

  /** @param extra one more line of its configuration */
  static async start(path: string, databaseUrl: string, extra = ''): Promise<PgBouncer> {
    const { hostname, port, username, password, pathname } = new URL(databaseUrl)
    const listenPort = await freePort()
    const folder = mkdtempSync(join(tmpdir(), 'carillon-pgbouncer-'))
    chmodSync(folder, 0o777)
    const login = `user=${decodeURIComponent(username)} password=${decodeURIComponent(password)}`
    writeFileSync(
      join(folder, 'pgbouncer.ini'),
      `[databases]
       pooled = host=${hostname} port=${port} dbname=${pathname.slice(1)} ${login}
       [pgbouncer]
       listen_addr = 127.0.0.1
       listen_port = ${listenPort}
       unix_socket_dir =
       auth_type = any
       pool_mode = transaction
       default_pool_size = 1
       max_client_conn = 20
       server_login_retry = 0.1
       ${extra}`.replaceAll(/^ +/gm, ''),
    )
    const isRoot = process.getuid?.() === 0
    const child = spawn(path, [...(isRoot ? ['-u', 'nobody'] : []), join(folder, 'pgbouncer.ini')], {
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    await listening(child)
    return new PgBouncer(`postgres://anybody@127.0.0.1:${listenPort}/pooled`, child, folder)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = new Promise((resolve) => this.#process.once('exit', resolve))
    this.#process.kill('SIGTERM')
    await ended
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** Resolves once the log says that PgBouncer listens. */
function listening(child: ReturnType<typeof spawn>): Promise<void> {
  return new Promise((resolve, reject) => {
    let log = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      log += chunk.toString()
      if (log.includes('process up')) resolve()
    })
    child.once('exit', () => reject(new Error(`PgBouncer ended:\n${log}`)))
  })
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
