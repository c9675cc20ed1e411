import { basename, resolve } from 'node:path'

import { delay } from './clock.ts'
import { ensureDatabase, nameForServer, openDataDirectory, readPassword, type DataDirectory } from './data-directory.ts'
import { directoryInUse } from './directory-claim.ts'
import { findFreePort, LOOPBACK } from './free-port.ts'
import { PostgresError } from './postgres-error.ts'
import { releaseStaleLock } from './postmaster-lock.ts'
import { commandLineOf, parentOf } from './process-table.ts'
import type { CopiedProgram } from './program-copy.ts'
import { openProgram, type Program } from './program.ts'
import { superuserUrl } from './running-postgres.ts'
import { ServerProcess } from './server-process.ts'
import { chooseServerUser } from './server-user.ts'

export interface PostgresOptions {
  /** Made if it is not there. The data in it survives stops, crashes and restarts. */
  readonly dataDir: string
  /** @default a free one */
  readonly port?: number
  /** Settings as in `postgresql.conf`: `{ max_connections: '200' }`. Where it listens and logs is not theirs to say. */
  readonly settings?: Readonly<Record<string, string>>
}

/** A Postgres of our own, on loopback. Stop it before the process ends; should the process crash, it stops by itself. */
export interface EmbeddedPostgres extends AsyncDisposable {
  /** Of the superuser, with the password, to the database `postgres`. */
  readonly url: string
  readonly port: number
  /** The folder of the copy that runs, and why a copy runs; null if Postgres runs where npm installed it. */
  readonly copiedProgram: { readonly folder: string; readonly reason: string } | null
  /** Fulfilled once the server has ended, because of `stop` or by itself. */
  readonly ended: Promise<void>
  /** Ends all sessions and the server. Safe to call twice. */
  stop(): Promise<void>
}

const PORT_TRIES = 5
/** A server that was killed or told to stop writes what is dirty and lets go of its memory: 30 seconds for it. */
const LETTING_GO_TRIES = 300
const PAUSE_MS = 100

/** Starts the Postgres that npm installed on the data in a folder; throws `PostgresError`. */
export async function startPostgres(options: PostgresOptions): Promise<EmbeddedPostgres> {
  const { settings = {} } = options
  const given = resolve(options.dataDir)
  const directory = await openDataDirectory(given, chooseServerUser(given))
  const { path } = directory
  let program: Program | undefined
  // In this order: a copy of the program is used by no other process until the directory is released.
  const release = (): void => {
    program?.copy?.remove()
    directory.release()
  }
  try {
    program = openProgram(path, directory.user)
    await ensureDatabase(directory, program, settings['fsync'] !== 'off')
    const { server, port } = await startServer({ ...options, settings, directory, postgres: program.postgres })
    return embeddedPostgres({ server, port, path, copy: program.copy, release })
  } catch (error) {
    release()
    throw error
  }
}

interface StartOptions {
  readonly postgres: string
  readonly directory: DataDirectory
  readonly port?: number
  readonly settings: Readonly<Record<string, string>>
}

async function startServer(options: StartOptions): Promise<{ server: ServerProcess; port: number }> {
  const { path } = options.directory
  const triesLeft = { port: options.port === undefined ? PORT_TRIES : 1, lettingGo: LETTING_GO_TRIES }
  for (;;) {
    const outcome = await tryStart(options)
    if ('server' in outcome) return outcome
    triesLeft[outcome.reason] -= 1
    if (triesLeft[outcome.reason] <= 0) throw outcome.error ?? directoryInUse(path)
    if (outcome.reason !== 'port') await delay(PAUSE_MS)
  }
}

/** Why there is no server yet. */
interface NotStarted {
  readonly reason: 'port' | 'lettingGo'
  readonly error?: PostgresError
}

async function tryStart({
  postgres,
  directory,
  settings,
  port: wantedPort,
}: StartOptions): Promise<{ server: ServerProcess; port: number } | NotStarted> {
  const { path, user } = directory
  const holder = releaseStaleLock(path)
  if (holder !== 'nobody') {
    const error = directoryInUse(path, holder.pid)
    if (!holder.isStopping) stopOrphan(holder.pid, error)
    return { reason: 'lettingGo', error }
  }
  const port = wantedPort ?? (await findFreePort())
  const args = ['-D', nameForServer(path, directory), '-p', String(port), ...settingArguments(settings)]
  const server = new ServerProcess(postgres, args, { user, cwd: path })
  return (await server.waitUntilReady()) ? { server, port } : explain(server.log, path, port)
}

/**
 * We hold the directory, so the process that started this server has ended, and its guard has told the server to stop. It is
 * told again, should the guard have been killed as well. A server that somebody started by other means is left alone, and
 * so is that of an earlier Carillon, which claimed nothing: it is no orphan while a Node is its parent.
 */
function stopOrphan(pid: number, error: PostgresError): void {
  const parent = parentOf(pid) ?? 0
  const isOrphan = parent === process.pid || basename(commandLineOf(parent)[0] ?? '') !== 'node'
  if (!isOrphan || !commandLineOf(pid).includes(SIGNATURE)) throw error
  process.kill(pid, 'SIGINT')
}

/** We start no server without this argument, and hardly anybody else starts one with it. */
const SIGNATURE = 'unix_socket_directories='

function settingArguments(settings: Readonly<Record<string, string>>): string[] {
  const fixed = {
    listen_addresses: LOOPBACK,
    // No socket file: its path must be short, and its folder open to the server's user.
    unix_socket_directories: '',
    // We read the log to know when it is ready, and why not.
    logging_collector: 'off',
    log_destination: 'stderr',
    lc_messages: 'C',
  }
  const pairs = Object.entries({ log_timezone: 'UTC', timezone: 'UTC', ...settings, ...fixed })
  return pairs.flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

/** Postgres says why it ended in its log and nowhere else. Throws if another try would end alike. */
function explain(log: string, path: string, port: number): NotStarted {
  if (log.includes('pre-existing shared memory block')) return { reason: 'lettingGo' }
  if (log.includes('lock file "postmaster.pid" already exists')) throw directoryInUse(path)
  if (/could not bind .*: Address already in use/.test(log)) {
    const message = `port ${port} of ${LOOPBACK} is in use by another program`
    return { reason: 'port', error: new PostgresError('port_in_use', message) }
  }
  throw new PostgresError('start_failed', `Postgres did not start on ${path}: ${lastFatal(log)}`)
}

function lastFatal(log: string): string {
  const lines = log.split('\n')
  const fatal = lines.findLast((line) => line.includes('FATAL:')) ?? lines.at(-1) ?? ''
  return fatal.replace(/^.*FATAL:\s*/, '') || 'it said nothing'
}

interface Started {
  readonly server: ServerProcess
  readonly port: number
  readonly path: string
  readonly copy: CopiedProgram | null
  readonly release: () => void
}

function embeddedPostgres({ server, port, path, copy, release }: Started): EmbeddedPostgres {
  const ended = server.ended.then(release)
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> => (stopped ??= server.stop().then(() => ended))
  return {
    url: superuserUrl(port, readPassword(path)),
    port,
    copiedProgram: copy && { folder: copy.folder, reason: copy.reason },
    ended,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
