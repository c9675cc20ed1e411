export { makeDirectory } from './make-directory.ts'
export { PostgresError, type PostgresErrorCode } from './postgres-error.ts'
export { findRunningPostgres, type RunningPostgres } from './running-postgres.ts'
export { startPostgres, type EmbeddedPostgres, type PostgresOptions } from './start-postgres.ts'
