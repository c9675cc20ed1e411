export { PostgresError, type PostgresErrorCode } from './postgres-error.ts'
export { startPostgres, type EmbeddedPostgres, type PostgresOptions } from './start-postgres.ts'
