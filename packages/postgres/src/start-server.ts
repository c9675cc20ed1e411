import { basename } from 'node:path'

import { delay } from './clock.ts'
import { nameForServer, type DataDirectory } from './data-directory.ts'
import { directoryInUse } from './directory-claim.ts'
import { findFreePort, LOOPBACK } from './free-port.ts'
import { PostgresError } from './postgres-error.ts'
import { releaseStaleLock } from './postmaster-lock.ts'
import { commandLineOf, parentOf } from './process-table.ts'
import { ServerProcess } from './server-process.ts'

const PORT_TRIES = 5
/** A server that was killed or told to stop writes what is dirty and lets go of its memory: 30 seconds for it. */
const LETTING_GO_TRIES = 300
const PAUSE_MS = 100

interface StartServerOptions {
  /** The program. */
  readonly postgres: string
  readonly directory: DataDirectory
  /** @default a free one */
  readonly port?: number
  readonly settings: Readonly<Record<string, string>>
  /** Calls the start off when it fires, and stops the server that was started. */
  readonly signal: AbortSignal
}

/** Starts a server on a database that is there. Throws why if it does not start, or if the signal fires first. */
export async function startServer(options: StartServerOptions): Promise<{ server: ServerProcess; port: number }> {
  const { path } = options.directory
  const triesLeft = { port: options.port === undefined ? PORT_TRIES : 1, lettingGo: LETTING_GO_TRIES }
  for (;;) {
    const outcome = await tryStart(options)
    if ('server' in outcome) return outcome
    triesLeft[outcome.reason] -= 1
    if (triesLeft[outcome.reason] <= 0) throw outcome.error ?? directoryInUse(path)
    if (outcome.reason !== 'port') await delay(PAUSE_MS, options.signal)
    options.signal.throwIfAborted()
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
  signal,
}: StartServerOptions): Promise<{ server: ServerProcess; port: number } | NotStarted> {
  const { path, user } = directory
  const holder = releaseStaleLock(path)
  if (holder !== 'nobody') {
    const error = directoryInUse(path, holder.pid)
    if (!holder.isStopping) stopOrphan(holder.pid, error)
    return { reason: 'lettingGo', error }
  }
  const port = wantedPort ?? (await findFreePort())
  const args = ['-D', nameForServer(path, directory), '-p', String(port), ...settingArguments(settings)]
  const server = new ServerProcess(postgres, args, { user, cwd: path, signal })
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
function explain(log: readonly string[], path: string, port: number): NotStarted {
  const text = log.join('\n')
  if (text.includes('pre-existing shared memory block')) return { reason: 'lettingGo' }
  if (text.includes('lock file "postmaster.pid" already exists')) throw directoryInUse(path)
  if (/could not bind .*: Address already in use/.test(text)) {
    const message = `port ${port} of ${LOOPBACK} is in use by another program`
    return { reason: 'port', error: new PostgresError('port_in_use', message) }
  }
  throw new PostgresError('start_failed', `Postgres did not start on ${path}: ${reasonIn(log)}`, { log: [...log] })
}

/** Without the time and the process id. The lines after a FATAL or PANIC, and all of a server that was killed, give no reason. */
function reasonIn(log: readonly string[]): string {
  const reason =
    log.findLast((line) => /(FATAL|PANIC):/.test(line)) ?? log.findLast((line) => !/ LOG: /.test(line)) ?? ''
  return reason.replace(/^.*?[A-Z]+:\s+/, '') || 'it did not say why'
}
