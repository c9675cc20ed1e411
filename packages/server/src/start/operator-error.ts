/** Every reason why a server or worker does not start, or a maintenance command fails. The CLI turns each into an exit code. */
const OPERATOR_ERROR_CODES = [
  /** An environment variable or a flag is wrong; the message names it. */
  'settings_invalid',
  /** `carillon server` and `carillon worker` need DATABASE_URL. */
  'database_required',
  /** The connection fails, or the database refuses it: no such database, wrong password, missing role. */
  'database_unreachable',
  'schema_outdated',
  'schema_too_new',
  'schema_changed',
  /** A migration cannot run while workers of an earlier version are alive. */
  'workers_alive',
  /** A module of CARILLON_MODULES cannot be imported, or breaks the rules of modules; the message names it. */
  'module_refused',
  'data_directory_missing',
  /** The directory cannot be created, read or written. */
  'data_directory_unusable',
  /** The directory holds files that Carillon did not write. */
  'data_directory_foreign',
  /** A later version of Carillon wrote the directory. */
  'data_directory_newer',
  /** Another version of Postgres wrote the database in the directory. */
  'data_directory_outdated',
  /** Another Carillon process uses the directory. */
  'data_directory_in_use',
  /** The embedded Postgres does not start; the message quotes the reason. */
  'postgres_failed',
  'port_in_use',
  /** The host is not an address of this machine, or the port is reserved. */
  'address_unavailable',
  'unknown_target_kind',
  /** A stop was requested before the start was complete. Nothing is left running. */
  'stopped',
] as const

export type OperatorErrorCode = (typeof OPERATOR_ERROR_CODES)[number]

/** Why Carillon does not start, or a command fails. The message is one sentence for the operator: what is wrong, where, what to do. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError'
  readonly code: OperatorErrorCode

  constructor(code: OperatorErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

/** `ENOENT`, `28P01` and the like; undefined for an error without a code. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
