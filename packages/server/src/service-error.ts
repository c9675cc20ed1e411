/** Every way that starting or examining the service can fail. Closed: the command line has an exit code for each. */
export const SERVICE_ERROR_CODES = [
  /** An environment variable or a flag; the message names it. */
  'settings_invalid',
  /** A server or a worker of its own needs DATABASE_URL. */
  'database_required',
  /** Nobody answers, or whoever does refuses: no such database, wrong password. */
  'database_unreachable',
  'schema_outdated',
  'schema_too_new',
  'schema_changed',
  /** A migration waits for the workers of an earlier version to end. */
  'workers_alive',
  'data_directory_missing',
  /** It cannot be made, read or written. */
  'data_directory_unusable',
  /** It holds something that Carillon did not write. */
  'data_directory_foreign',
  /** A later version of Carillon wrote it. */
  'data_directory_newer',
  /** Another version of Postgres wrote the database in it. */
  'data_directory_outdated',
  /** Another Carillon runs on it. */
  'data_directory_in_use',
  /** The Postgres that Carillon brings does not start, for a reason that the message quotes. */
  'postgres_failed',
  'port_in_use',
  /** The address to listen on is not one of this machine, or the port is reserved. */
  'address_unavailable',
  'unknown_target_kind',
  /** Somebody asked for a stop before the start was over. Nothing is left running. */
  'stopped',
] as const

export type ServiceErrorCode = (typeof SERVICE_ERROR_CODES)[number]

/** Why the service does not run. The message is one sentence for who started it: what, where, what to do. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  readonly code: ServiceErrorCode

  constructor(code: ServiceErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** `ENOENT`, `28P01` and the like; undefined for an error without a code. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
