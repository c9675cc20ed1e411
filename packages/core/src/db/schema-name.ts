import { CarillonError } from '../kernel/errors.ts'

/*
 * What several Carillons in one Postgres must not share carries the name of their schema: roles, channels and advisory locks. Roles
 * belong to the whole server, so two Carillons in two databases of one server share them unless their schemas differ.
 */

export const SCHEMA_DEFAULT = 'carillon'

/** Short enough for the names that are built from it, such as `<schema>_worker_login`: Postgres cuts names at 63 bytes. */
const SCHEMA = /^[a-z][a-z0-9_]{0,39}$/
/** Schemas that other programs put their tables into. Going down to migration 0 drops Carillon's schema. */
const TAKEN = /^(?:pg_.*|public|information_schema)$/

/** Completes "expected …" in an error. */
export const SCHEMA_EXPECTED =
  "a schema of up to 40 lower-case letters, digits and underscores that begins with a letter, not public and none of Postgres' own"

export function isSchemaName(text: string): boolean {
  return SCHEMA.test(text) && !TAKEN.test(text)
}

/** @throws CarillonError unless the name can be the schema of a Carillon */
export function checkedSchema(schema = SCHEMA_DEFAULT): string {
  if (isSchemaName(schema)) return schema
  throw new CarillonError('invalid_input', `expected ${SCHEMA_EXPECTED}, got ${JSON.stringify(schema)}`)
}

/** The Postgres role of the API. It owns nothing, and every row-level security policy applies to it (I9). */
export function apiRole(schema = SCHEMA_DEFAULT): string {
  return `${schema}_api`
}

/** The Postgres role of workers. It sees all tenants, and may do only what the pipeline needs (I9). */
export function workerRole(schema = SCHEMA_DEFAULT): string {
  return `${schema}_worker`
}

/** Temporary tables come last: otherwise one of them could take the place of a table or a type. */
export function searchPath(schema: string): string {
  return `${schema}, pg_temp`
}
