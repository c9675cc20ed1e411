/** The codes of Postgres that this code base knows, named once. */
export const SQLSTATE = {
  serializationFailure: '40001',
  deadlockDetected: '40P01',
  uniqueViolation: '23505',
  foreignKeyViolation: '23503',
  lockNotAvailable: '55P03',
  checkViolation: '23514',
  /** Ours: a project or a user has as many schedules as it may. */
  quotaExceeded: 'CA001',
  /** Ours: who counts schedules near their limit must be alone with the count. */
  countsNotAlone: 'CA002',
  /** Ours: a migration found workers that would not understand what it makes. */
  workersAlive: 'CA003',
} as const

/** The SQLSTATE of an error that the server reported; undefined for all others, such as a lost connection. */
export function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  const { code } = error
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && 'severity' in error ? code : undefined
}

/** What rows may be the cause of: their values, how much they hold, or that somebody holds them. All else is the database's trouble. */
const CAUSED_BY_A_ROW = /^(22|23|40|54|55P03|57014)/

/** True if a batch may succeed without one of its rows. */
export function isCausedByRow(error: unknown): boolean {
  return CAUSED_BY_A_ROW.test(sqlStateOf(error) ?? '')
}

/**
 * Whether a connection is in doubt after an error, and with it what was sent last: everything but an error that the server
 * reported within a healthy session.
 */
export function isConnectionInDoubt(error: unknown): boolean {
  const code = sqlStateOf(error)
  return code === undefined || code.startsWith('57P') || code.startsWith('08') || code === '25P03'
}
