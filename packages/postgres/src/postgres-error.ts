/** Closed: callers may switch on it. */
export type PostgresErrorCode =
  /** npm has no binaries for this system, or did not install them. */
  | 'binaries_missing'
  /** The system knows no name for the user that Postgres would run as, and initdb wants one. */
  | 'user_unnamed'
  /** The user that Postgres runs as can neither run the installed program nor a copy of it, or not get to the data. */
  | 'path_blocked'
  | 'directory_unwritable'
  /** Another process that is alive serves it, or is about to. */
  | 'directory_in_use'
  /** It holds something, but no database. */
  | 'directory_foreign'
  | 'wrong_version'
  /** The server is to be started again, but somebody has removed its database meanwhile. */
  | 'database_missing'
  | 'port_in_use'
  /** Postgres ended for a reason of its own; the message quotes it. */
  | 'start_failed'

/** Why there is no Postgres. The message is one sentence for the person who started it. */
export class PostgresError extends Error {
  override readonly name = 'PostgresError'
  readonly code: PostgresErrorCode
  /** What Postgres wrote to its log before it ended; empty if it was not started. */
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

/** `ENOENT` and the like; undefined for what is no error of the system. */
export function systemCodeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
