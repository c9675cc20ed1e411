import { basename } from 'node:path'

import { delay } from './clock.ts'
import { nameForServer, type DataDirectory } from './data-directory.ts'
import { directoryInUse } from './directory-claim.ts'
import { PostgresError } from './postgres-error.ts'
import { releaseStaleLock } from './postmaster-lock.ts'
import { commandLineOf, parentOf } from './process-table.ts'
import { findFreePort, LOOPBACK } from './server-address.ts'
import { ServerProcess } from './server-process.ts'

const PORT_TRIES = 5
/** For 30 seconds a start waits until a previous server, stopping or killed, has written its pages and freed its shared memory. */
const STOPPING_TRIES = 300
const PAUSE_MS = 100

interface StartServerOptions {
  /** The path of the server program. */
  readonly postgres: string
  readonly directory: DataDirectory
  /** @default a free port */
  readonly port?: number
  readonly settings: Readonly<Record<string, string>>
  /** Cancels the start when it aborts, and stops the server. */
  readonly signal: AbortSignal
}

/** Starts a server on an existing database. Throws if it does not start, or if the signal aborts first. */
export async function startServer(options: StartServerOptions): Promise<{ server: ServerProcess; port: number }> {
  const { path } = options.directory
  const triesLeft = { port: options.port === undefined ? PORT_TRIES : 1, stopping: STOPPING_TRIES }
  for (;;) {
    const outcome = await tryStart(options)
    if ('server' in outcome) return outcome
    triesLeft[outcome.reason] -= 1
    if (triesLeft[outcome.reason] <= 0) throw outcome.error ?? directoryInUse(path)
    if (outcome.reason !== 'port') await delay(PAUSE_MS, options.signal)
    options.signal.throwIfAborted()
  }
}

/** Why a try did not start a server, although another try may. */
interface NotStarted {
  readonly reason: 'port' | 'stopping'
  readonly error?: PostgresError
}

async function tryStart({
  postgres,
  directory,
  settings,
  port: wantedPort,
  signal,
}: StartServerOptions): Promise<{ server: ServerProcess; port: number } | NotStarted> {
  const { path, user } = directory
  const holder = releaseStaleLock(path)
  if (holder !== undefined) {
    const error = directoryInUse(path, holder.pid)
    if (!holder.isStopping) stopOrphan(holder.pid, error)
    return { reason: 'stopping', error }
  }
  const port = wantedPort ?? (await findFreePort())
  const args = ['-D', nameForServer(path, directory), '-p', String(port), ...settingArguments(settings)]
  const server = new ServerProcess(postgres, args, { user, cwd: path, signal })
  return (await server.waitUntilReady()) ? { server, port } : explainFailure(server.log, path, port)
}

/**
 * Stops a Postgres server that outlived the Carillon process that started it. This process holds the claim, so that process is
 * gone, and its watchdog has stopped the server, unless the watchdog was killed too. Throws `error` for a server that something
 * else started. Also throws it if another Node process is the server's parent: an older Carillon, which wrote no claims, may still
 * use the server.
 */
function stopOrphan(pid: number, error: PostgresError): void {
  const parent = parentOf(pid) ?? 0
  const isOrphan = parent === process.pid || basename(commandLineOf(parent)[0] ?? '') !== 'node'
  if (!isOrphan || !commandLineOf(pid).includes(SIGNATURE)) throw error
  process.kill(pid, 'SIGINT')
}

/** Carillon starts every server with this argument. A server that was started by hand hardly ever has it. */
const SIGNATURE = 'unix_socket_directories='

function settingArguments(settings: Readonly<Record<string, string>>): string[] {
  const fixed = {
    listen_addresses: LOOPBACK,
    // No socket file: its path must be short, and the server's user must be able to enter its folder.
    unix_socket_directories: '',
    // `ServerProcess` reads the log to learn when the server is ready, or why it ended.
    logging_collector: 'off',
    log_destination: 'stderr',
    lc_messages: 'C',
  }
  const pairs = Object.entries({ log_timezone: 'UTC', timezone: 'UTC', ...settings, ...fixed })
  return pairs.flatMap(([name, value]) => ['-c', `${name}=${value}`])
}

/** Finds the reason in the log, the only place where Postgres reports it. Throws if another try would fail too. */
function explainFailure(log: readonly string[], path: string, port: number): NotStarted {
  const text = log.join('\n')
  if (text.includes('pre-existing shared memory block')) return { reason: 'stopping' }
  if (text.includes('lock file "postmaster.pid" already exists')) throw directoryInUse(path)
  if (/could not bind .*: Address already in use/.test(text)) {
    const message = `port ${port} of ${LOOPBACK} is in use by another program`
    return { reason: 'port', error: new PostgresError('port_in_use', message) }
  }
  throw new PostgresError('start_failed', `Postgres did not start on ${path}: ${reasonIn(log)}`, { log: [...log] })
}

/** The last FATAL or PANIC line, else the last line that is not LOG, without time and process id. */
function reasonIn(log: readonly string[]): string {
  const reason =
    log.findLast((line) => /(FATAL|PANIC):/.test(line)) ?? log.findLast((line) => !/ LOG: /.test(line)) ?? ''
  return reason.replace(/^.*?[A-Z]+:\s+/, '') || 'it did not say why'
}
