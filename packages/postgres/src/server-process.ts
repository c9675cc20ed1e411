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
  /** Open files that it gets as number 3 and on. */
  readonly inherited?: readonly number[]
}

/** Without a word in its log. Recovery after a crash may take longer than this, and says every ten seconds how far it is. */
const READY_LIMIT_MS = 120_000
/** A fast stop only has to write what is dirty. After it, Postgres is told to stop at once; after it again, killed. */
const STOP_LIMIT_MS = 10_000
const LOG_LINES_KEPT = 40

interface ServerOptions extends SpawnOptions {
  /** Stops the server when it fires. */
  readonly signal: AbortSignal
}

/** A Postgres that runs, and that ends with us at the latest. */
export class ServerProcess {
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown>
  readonly #log: string[] = []
  #isReady = false

  constructor(command: string, args: readonly string[], options: ServerOptions) {
    const isOrphan = orphansIn(options.cwd)
    this.#child = start(command, args, options)
    this.#exited = exitOf(this.#child)
    guard(this.#child, options, 'INT')
    endOrphans(this.#child, isOrphan)
    this.#stopOn(options.signal)
  }

  /** The latest lines of the server's log. */
  get log(): readonly string[] {
    return this.#log
  }

  /** The same without what statements and their errors say, for they may quote what schedules hold. */
  get logOfServer(): readonly string[] {
    return this.#log.filter((line) => / (LOG|WARNING|FATAL|PANIC): /.test(line))
  }

  /** Once the server and all of its processes have ended. */
  get ended(): Promise<void> {
    return this.#exited.then(() => undefined)
  }

  /** True once the server accepts connections; false if it ended instead. */
  async waitUntilReady(): Promise<boolean> {
    const { stderr } = this.#child
    if (!stderr) {
      // The system had no process or no file left for it. The exit throws and says so.
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
      // The log is read to its end before the exit counts, so that it holds the reason.
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
      // SIGINT: a fast stop, which ends the sessions; SIGTERM would wait for them. On Windows each of these ends it at once.
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
 * Stops a process when we die without a word: a shell waits for its input to end, which the system sees to however a
 * process ends, and then sends a signal. Nothing polls, and nothing is left running after a crash.
 * @param signal `INT` is what a stop of a server sends. initdb looks at it only between its steps, and what it made so far is thrown
 * away by the next start: `KILL`
 */
function guard(child: ChildProcess, { user, cwd }: SpawnOptions, signal: 'INT' | 'KILL'): void {
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
    // The system has no process left for it. Should we be killed, the next start stops the server.
  }
}

/** Runs a command to its end; throws with what it said if it fails. */
export async function runToEnd(command: string, args: readonly string[], options: SpawnOptions): Promise<void> {
  const child = start(command, args, options)
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (said += text))
  const exited = exitOf(child)
  guard(child, options, 'KILL')
  const code = await exited
  if (code === 0) return
  if (said.includes('could not look up effective user ID')) {
    throw new PostgresError(
      'user_unnamed',
      `user ${options.user?.uid ?? process.geteuid?.()} has no name on this system, without which Postgres makes no ` +
        'database: add it to /etc/passwd, or start as another user',
    )
  }
  throw new PostgresError('start_failed', `${command} could not make a database: ${said.trim()}`)
}

function start(command: string, args: readonly string[], { user, cwd, inherited = [] }: SpawnOptions): ChildProcess {
  return spawn(command, args, {
    ...user,
    cwd,
    env: environment(cwd),
    // A session of its own: Ctrl-C in a terminal reaches us alone, and we end what uses the database first.
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', ...inherited],
  })
}

/**
 * Ours without what would set up another Postgres (PGDATA, PGPORT …), without our own settings, some of which are keys, and in
 * English: the log is read. The folder it works in, for somebody who looks at processes.
 */
function environment(folder: string): NodeJS.ProcessEnv {
  const others = Object.entries(process.env).filter(([name]) => !/^(PG|LC_|CARILLON_|DATABASE_URL$|npm_)/.test(name))
  return { ...Object.fromEntries(others), LC_ALL: 'C', CARILLON_POSTGRES: folder }
}

/** The exit code; null after a signal. Throws if the command could not be started. */
async function exitOf(child: ChildProcess): Promise<unknown> {
  try {
    const [code] = (await once(child, 'close')) as unknown[]
    return code
  } catch (error) {
    throw new PostgresError('start_failed', `${child.spawnfile} could not be started`, { cause: error })
  }
}
