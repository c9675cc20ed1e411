/** The closed list of codes: callers may switch on it. */
export type PostgresErrorCode =
  /** npm has no Postgres binaries for this system, or did not install them. */
  | 'binaries_missing'
  /** The user that Postgres would run as has no name on this system, and initdb requires one. */
  | 'user_unnamed'
  /** The user that Postgres runs as cannot run the installed program or a copy of it, or cannot reach the data. */
  | 'path_blocked'
  | 'directory_unwritable'
  /** Another live process runs Postgres on the data directory or is about to. */
  | 'directory_in_use'
  /** The data directory holds files, but no database. */
  | 'directory_foreign'
  | 'wrong_version'
  /** Postgres ended and cannot be restarted, because the database was removed in the meantime. */
  | 'database_missing'
  | 'port_in_use'
  /** Postgres did not start for another reason; the message quotes it. */
  | 'start_failed'

/** Why Postgres did not start. The message is written for the user who started it. */
export class PostgresError extends Error {
  override readonly name = 'PostgresError'
  readonly code: PostgresErrorCode
  /** The last log lines of Postgres; empty if it was not started. */
  readonly log: readonly string[]

  constructor(
    code: PostgresErrorCode,
    message: string,
    { log = [], ...options }: ErrorOptions & { readonly log?: readonly string[] } = {},
  ) {
    super(message, options)
    this.code = code
    this.log = log
  }
}

/** The code of a system error, such as `ENOENT`; undefined for any other error. */
export function systemCodeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
