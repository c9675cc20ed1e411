import { resolve } from 'node:path'

import { findBinaries } from './binaries.ts'
import { delay } from './clock.ts'
import { prepareDataDirectory, type DataDirectory } from './data-directory.ts'
import { findFreePort, LOOPBACK } from './free-port.ts'
import { PostgresError } from './postgres-error.ts'
import { directoryInUse, releaseStaleLock } from './postmaster-lock.ts'
import { superuserUrl } from './running-postgres.ts'
import { ServerProcess } from './server-process.ts'
import { chooseServerUser, requireReachable, type ServerUser } from './server-user.ts'

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
  /** Fulfilled once the server has ended, because of `stop` or by itself. */
  readonly ended: Promise<void>
  /** Ends all sessions and the server. Safe to call twice. */
  stop(): Promise<void>
}

const PORT_TRIES = 5
/** A server that was killed or told to stop lets go of its memory and files within a moment. */
const LETTING_GO_TRIES = 50
/** The server of a process that was killed does not know yet: it is told a moment later. */
const HELD_TRIES = 20
const PAUSE_MS = 100

/** Starts the Postgres that npm installed on the data in a folder; throws `PostgresError`. */
export async function startPostgres(options: PostgresOptions): Promise<EmbeddedPostgres> {
  const { settings = {} } = options
  const path = resolve(options.dataDir)
  const user = chooseServerUser(path)
  const binaries = findBinaries()
  requireReachable(binaries.postgres, user)
  const directory = await prepareDataDirectory({ path, user, binaries, sync: settings['fsync'] !== 'off' })
  const { server, port } = await startServer({ ...options, settings, directory, user, postgres: binaries.postgres })
  return embeddedPostgres(server, port, directory)
}

interface StartOptions {
  readonly postgres: string
  readonly directory: DataDirectory
  readonly user: ServerUser
  readonly port?: number
  readonly settings: Readonly<Record<string, string>>
}

async function startServer(options: StartOptions): Promise<{ server: ServerProcess; port: number }> {
  const { path } = options.directory
  const triesLeft = { port: options.port === undefined ? PORT_TRIES : 1, lettingGo: LETTING_GO_TRIES, held: HELD_TRIES }
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
  readonly reason: 'port' | 'lettingGo' | 'held'
  readonly error?: PostgresError
}

async function tryStart({
  postgres,
  directory: { path },
  user,
  settings,
  port: wantedPort,
}: StartOptions): Promise<{ server: ServerProcess; port: number } | NotStarted> {
  const holder = releaseStaleLock(path)
  if (holder !== 'nobody') {
    return { reason: holder.isStopping ? 'lettingGo' : 'held', error: directoryInUse(path, holder.pid) }
  }
  const port = wantedPort ?? (await findFreePort())
  const server = new ServerProcess(postgres, serverArguments(path, port, settings), { user, cwd: path })
  return (await server.waitUntilReady()) ? { server, port } : explain(server.log, path, port)
}

function serverArguments(path: string, port: number, settings: Readonly<Record<string, string>>): string[] {
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
  return ['-D', path, '-p', String(port), ...pairs.flatMap(([name, value]) => ['-c', `${name}=${value}`])]
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

function embeddedPostgres(server: ServerProcess, port: number, { password }: DataDirectory): EmbeddedPostgres {
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> => (stopped ??= server.stop())
  return {
    url: superuserUrl(port, password),
    port,
    ended: server.ended,
    stop,
    [Symbol.asyncDispose]: stop,
  }
}
