/** The SQLSTATE codes that this code base names. */
export const SQLSTATE = {
  serializationFailure: '40001',
  deadlockDetected: '40P01',
  uniqueViolation: '23505',
  foreignKeyViolation: '23503',
  lockNotAvailable: '55P03',
  checkViolation: '23514',
  /** Carillon's own: the project or the user has reached its quota of schedules. */
  quotaExceeded: 'CA001',
  /** Carillon's own: the quota is nearly reached, so the transaction must run again while it holds the lock on the count. */
  countsNotAlone: 'CA002',
  /** Carillon's own: a migration found live workers that cannot work with the schema that it creates. */
  workersAlive: 'CA003',
  /** Carillon's own: a migration cannot be reverted while the database holds tables of modules. */
  modulesPresent: 'CA004',
} as const

/** The SQLSTATE of an error that Postgres reported; undefined for any other error, such as a lost connection. */
export function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  const { code } = error
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && 'severity' in error ? code : undefined
}

/** Errors that one row of a batch can cause: by its values, by its size, or because another transaction has locked it. */
const CAUSED_BY_A_ROW = /^(22|23|40|54|55P03|57014)/

/** True if a batch may succeed without one of its rows. */
export function isCausedByRow(error: unknown): boolean {
  return CAUSED_BY_A_ROW.test(sqlStateOf(error) ?? '')
}

/**
 * True if the session may be lost after this error, and with it the outcome of the last statement. False only for an error that
 * Postgres reported within a session that goes on.
 */
export function isConnectionInDoubt(error: unknown): boolean {
  const code = sqlStateOf(error)
  return code === undefined || code.startsWith('57P') || code.startsWith('08') || code === '25P03'
}
