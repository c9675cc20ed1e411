/** Of sockets, from the system. */
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
 * Classes and codes of Postgres that say nothing against the request: no connection (08), no login (28), no such database
 * (3D000), no room (53), shut down or cut short (57), locked for too long (55P03), in the way of others (40), a standby
 * (25006), idle for too long (25P03).
 */
const SQLSTATES = /^(08|28|3D|40|53|57)|^(55P03|25006|25P03)$/

/** What the driver says without a code, and has said for years. There is nothing else to know it by. */
const DRIVER_MESSAGES =
  /^(Connection terminated|Query read timeout|timeout exceeded when trying to connect|Client has encountered a connection error|Cannot use a pool after calling end)/

/** Whether the database could not be asked, or could not answer in time: trying again later may help. */
export function isUnreachableDatabase(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  // Every address of a host was tried.
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isUnreachableDatabase)
  const sqlState = sqlStateOf(error)
  if (sqlState !== undefined) return SQLSTATES.test(sqlState) || endsSession(error)
  const code = 'code' in error ? error.code : undefined
  if (typeof code === 'string') return SOCKET_CODES.has(code)
  return DRIVER_MESSAGES.test(error.message) || isUnreachableDatabase(error.cause)
}

/** Of an error that Postgres reported; undefined for all others. */
export function sqlStateOf(error: Error): string | undefined {
  if (!('code' in error) || !('severity' in error)) return undefined
  return typeof error.code === 'string' && /^[0-9A-Z]{5}$/.test(error.code) ? error.code : undefined
}

/** Postgres does so to refuse a login, or because it stops: whatever the code, it was not about the statement. */
function endsSession(error: Error): boolean {
  return 'severity' in error && (error.severity === 'FATAL' || error.severity === 'PANIC')
}
