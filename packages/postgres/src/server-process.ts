import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

import { after } from './clock.ts'
import { endOrphans, orphansIn } from './orphaned-backends.ts'
import { PostgresError } from './postgres-error.ts'
import type { ServerUser } from './server-user.ts'

interface SpawnOptions {
  readonly user: ServerUser
  readonly cwd: string
  /** Open files that the process gets as descriptor 3 and up. */
  readonly inherited?: readonly number[]
}

/** A starting server whose log is silent for this long is killed. Recovery may take longer, but logs every ten seconds. */
const READY_LIMIT_MS = 120_000
/** A fast stop only writes dirty pages. After this time the server gets SIGQUIT, after twice this time SIGKILL. */
const STOP_LIMIT_MS = 10_000
const LOG_LINES_KEPT = 40

interface ServerOptions extends SpawnOptions {
  /** Stops the server when it aborts. */
  readonly signal: AbortSignal
}

/** A running Postgres server. It ends with this process at the latest. */
export class ServerProcess {
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown>
  readonly #log: string[] = []
  #isReady = false

  constructor(command: string, args: readonly string[], options: ServerOptions) {
    const isOrphan = orphansIn(options.cwd)
    this.#child = start(command, args, options)
    this.#exited = exitOf(this.#child)
    startWatchdog(this.#child, options, 'INT')
    endOrphans(this.#child, isOrphan)
    this.#stopOn(options.signal)
  }

  /** The last lines of the server's log. */
  get log(): readonly string[] {
    return this.#log
  }

  /** The log without lines about statements, which may quote user data. */
  get logOfServer(): readonly string[] {
    return this.#log.filter((line) => / (LOG|WARNING|FATAL|PANIC): /.test(line))
  }

  /** Resolves once the server and all of its processes have ended. */
  get ended(): Promise<void> {
    return this.#exited.then(() => undefined)
  }

  /** Resolves to true once the server accepts connections, or to false if the server ends first. */
  async waitUntilReady(): Promise<boolean> {
    const { stderr } = this.#child
    if (!stderr) {
      // The system could not create the process. `#exited` rejects with the reason.
      await this.#exited
      return false
    }
    const lines = createInterface({ input: stderr })
    let cancelKill = this.#killLater()
    const ready = new Promise<void>((resolve) => {
      lines.on('line', (line) => {
        this.#log.push(line)
        if (this.#log.length > LOG_LINES_KEPT) this.#log.shift()
        if (this.#isReady) return
        cancelKill()
        this.#isReady = line.includes('database system is ready to accept connections')
        if (this.#isReady) resolve()
        else cancelKill = this.#killLater()
      })
    })
    try {
      // Waits for the end of the log as well as the exit, so the log contains the reason.
      await Promise.race([ready, Promise.all([this.#exited, once(lines, 'close')])])
    } finally {
      cancelKill()
    }
    return this.#isReady
  }

  #killLater(): () => void {
    return after(READY_LIMIT_MS, () => this.#child.kill('SIGKILL'))
  }

  #stopOn(signal: AbortSignal): void {
    const stop = (): void => {
      // SIGINT is a fast stop, which ends sessions; SIGTERM would wait for them. On Windows all signals kill at once.
      this.#child.kill('SIGINT')
      const cancelQuit = after(STOP_LIMIT_MS, () => this.#child.kill('SIGQUIT'))
      const cancelKill = after(2 * STOP_LIMIT_MS, () => this.#child.kill('SIGKILL'))
      this.#child.once('close', () => {
        cancelQuit()
        cancelKill()
      })
    }
    if (signal.aborted) stop()
    signal.addEventListener('abort', stop, { once: true })
    this.#child.once('close', () => signal.removeEventListener('abort', stop))
  }
}

/**
 * Starts a watchdog: a shell that ends `child` if this process dies. The shell waits for the end of its input, which the
 * system closes however this process ends, and then sends the signal. Nothing polls, and a crash leaves nothing running.
 * @param signal `INT` for a server, which is a fast stop. `KILL` for initdb, which handles SIGINT only between its steps;
 * the next start discards what initdb created
 */
function startWatchdog(child: ChildProcess, { user, cwd }: SpawnOptions, signal: 'INT' | 'KILL'): void {
  if (process.platform === 'win32' || child.pid === undefined) return
  const script = `read -r _; kill -${signal} "$1"`
  try {
    const shell = spawn('/bin/sh', ['-c', script, 'sh', String(child.pid)], {
      ...user,
      cwd: '/',
      env: environment(cwd),
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    shell.on('error', () => undefined)
    shell.unref()
    child.once('close', () => shell.kill('SIGKILL'))
  } catch {
    // The system could not create a process. If this process is killed, the next start stops the server.
  }
}

/** Runs initdb to its end. Throws with its error output if it fails. */
export async function runToEnd(command: string, args: readonly string[], options: SpawnOptions): Promise<void> {
  const child = start(command, args, options)
  let errorOutput = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (errorOutput += text))
  const exited = exitOf(child)
  startWatchdog(child, options, 'KILL')
  const code = await exited
  if (code === 0) return
  if (errorOutput.includes('could not look up effective user ID')) {
    throw new PostgresError(
      'user_unnamed',
      `user ${options.user?.uid ?? process.geteuid?.()} has no name on this system, and Postgres cannot create a ` +
        'database for a user without a name: add the user to /etc/passwd, or start as another user',
    )
  }
  throw new PostgresError('start_failed', `${command} could not create a database: ${errorOutput.trim()}`)
}

function start(command: string, args: readonly string[], { user, cwd, inherited = [] }: SpawnOptions): ChildProcess {
  return spawn(command, args, {
    ...user,
    cwd,
    env: environment(cwd),
    // In its own session, so Ctrl-C in a terminal reaches only this process, which ends the database clients first.
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', ...inherited],
  })
}

/**
 * The environment of this process without Postgres variables (PGDATA, PGPORT …) and without Carillon's settings, some of
 * which are secrets. The locale is C, because the log is parsed. CARILLON_POSTGRES shows the folder in process listings.
 */
function environment(folder: string): NodeJS.ProcessEnv {
  const others = Object.entries(process.env).filter(([name]) => !/^(PG|LC_|CARILLON_|DATABASE_URL$|npm_)/.test(name))
  return { ...Object.fromEntries(others), LC_ALL: 'C', CARILLON_POSTGRES: folder }
}

/** Resolves to the exit code, or null after a signal. Rejects if the command could not be started. */
async function exitOf(child: ChildProcess): Promise<unknown> {
  try {
    const [code] = (await once(child, 'close')) as unknown[]
    return code
  } catch (error) {
    throw new PostgresError('start_failed', `${child.spawnfile} could not be started`, { cause: error })
  }
}
