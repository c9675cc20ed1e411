import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { createPool, migrate } from '@carillon/core'
import { startPostgres, type EmbeddedPostgres } from '@carillon/postgres'

/** A separate Postgres with default durability and Carillon's schema. */
export class CrashablePostgres implements AsyncDisposable {
  readonly url: string
  readonly #folder: string
  #running: EmbeddedPostgres

  private constructor(folder: string, running: EmbeddedPostgres) {
    this.#folder = folder
    this.#running = running
    this.url = running.url
  }

  static async start(): Promise<CrashablePostgres> {
    const folder = mkdtempSync(join(tmpdir(), 'carillon-faults-'))
    // If root starts it, Postgres runs as another user, which must be able to reach its data.
    chmodSync(folder, 0o711)
    const postgres = new CrashablePostgres(
      folder,
      await startPostgres({ dataDir: join(folder, 'data'), settings: SETTINGS }),
    )
    const pool = createPool({ connectionString: postgres.url })
    await migrate(pool)
    await pool.end()
    return postgres
  }

  /** Kills the server and all of its processes, as a power cut would, and starts it again on the same data after a pause. */
  async crash(downMs: number): Promise<void> {
    const dataDir = join(this.#folder, 'data')
    const [pidText] = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n')
    const pid = Number(pidText)
    // The postmaster is killed first. Otherwise it would treat the death of a child as a crash, and recover by itself.
    for (const ended of [pid, ...childrenOf(pid)]) killIfThere(ended)
    await this.#running.ended
    await sleep(downMs)
    this.#running = await startPostgres({ dataDir, port: this.#running.port, settings: SETTINGS })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

/** The settings keep the default durability of Postgres. */
const SETTINGS = { max_connections: '200' }

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => parentOf(pid) === parent)
}

function parentOf(pid: number): number | undefined {
  try {
    // The state and the parent follow the name, which is in parentheses.
    const [, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
    return Number(parent)
  } catch {
    // The process has ended meanwhile.
    return undefined
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has ended meanwhile.
  }
}
