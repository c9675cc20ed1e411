import { sqlStateOf } from '@carillon/core'

/** Error codes of sockets, from the operating system. */
const SOCKET_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT',
])

/**
 * SQLSTATEs of failures that the request did not cause: no connection (08), login refused (28), no such database (3D), transaction
 * rollback such as a deadlock (40), out of resources (53), shut down or cancelled (57), lock not available (55P03), read-only
 * standby (25006), idle in transaction for too long (25P03).
 */
const SQLSTATES = /^(08|28|3D|40|53|57)|^(55P03|25006|25P03)$/

/** Errors of the database driver that carry no code. Only their messages identify them. */
const DRIVER_MESSAGES =
  /^(Connection terminated|Query read timeout|timeout exceeded when trying to connect|Client has encountered a connection error|Cannot use a pool after calling end)/

/** True if the database could not be reached or did not answer in time, so that a retry later may succeed. */
export function isUnreachableDatabase(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  // An AggregateError holds one error per address of the host.
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isUnreachableDatabase)
  const sqlState = sqlStateOf(error)
  if (sqlState !== undefined) return SQLSTATES.test(sqlState) || endsSession(error)
  const code = 'code' in error ? error.code : undefined
  if (typeof code === 'string') return SOCKET_CODES.has(code)
  return DRIVER_MESSAGES.test(error.message) || isUnreachableDatabase(error.cause)
}

/**
 * A copy of an error that is safe to log. The message of a Postgres error may quote the request (`invalid input syntax for type
 * uuid: "…"`), so only its SQLSTATE and its stack are kept.
 */
export function loggableError(error: unknown): Error | undefined {
  if (error === undefined) return undefined
  if (!(error instanceof Error)) return new Error('expected an Error to be thrown, got another value')
  const sqlState = sqlStateOf(error)
  const message = sqlState === undefined ? error.message : `Postgres refused a statement with SQLSTATE ${sqlState}`
  const cause = loggableError(error.cause)
  const copy = new Error(message, cause === undefined ? {} : { cause })
  copy.name = error.name
  if ('code' in error && typeof error.code === 'string') Object.assign(copy, { code: error.code })
  const frames = (error.stack ?? '').split('\n').filter((line) => /^ {4}at /.test(line))
  copy.stack = [`${copy.name}: ${message}`, ...frames].join('\n')
  return copy
}

/** True if Postgres ended the session, to refuse a login or to shut down. Then the statement was not at fault, whatever the code. */
function endsSession(error: Error): boolean {
  return 'severity' in error && (error.severity === 'FATAL' || error.severity === 'PANIC')
}
