import { CarillonError } from '../kernel/errors.ts'

/*
 * What several Carillons in one Postgres must not share carries the name of their schema: roles, channels and advisory locks. Roles
 * belong to the whole server, so two Carillons in two databases of one server share them unless their schemas differ.
 */

export const SCHEMA_DEFAULT = 'carillon'

/** Short enough for the names that are built from it, such as `<schema>_worker_login`: Postgres cuts names at 63 bytes. */
const SCHEMA = /^[a-z][a-z0-9_]{0,39}$/
/**
 * Schemas that other programs put their tables into: going down to migration 0 drops Carillon's schema. And `carillon_jobs`, which the
 * migrations of the schema `carillon` drop.
 */
const TAKEN = /^(?:pg_.*|public|information_schema|carillon_jobs)$/

/**
 * Statements contain the name without quotes. These words of Postgres cannot stand there: all that `pg_get_keywords()` calls reserved, and
 * those that it allows as names of columns only, because the name of a type cannot begin with them.
 */
export const RESERVED_WORDS: ReadonlySet<string> = new Set(
  `all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case cast char character
  check coalesce collate collation column concurrently constraint create cross current_catalog current_date current_role current_schema
  current_time current_timestamp current_user dec decimal default deferrable desc distinct do else end except exists extract false fetch
  float for foreign freeze from full grant greatest group grouping having ilike in initially inner inout int integer intersect interval
  into is isnull join json json_array json_arrayagg json_exists json_object json_objectagg json_query json_scalar json_serialize
  json_table json_value lateral leading least left like limit localtime localtimestamp merge_action national natural nchar none normalize
  not notnull null nullif numeric offset on only or order out outer overlaps overlay placing position precision primary real references
  returning right row select session_user setof similar smallint some substring symmetric system_user table tablesample then time
  timestamp to trailing treat trim true union unique user using values varchar variadic verbose when where window with xmlattributes
  xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable`.split(/\s+/),
)

/** Completes "expected …" in an error. */
export const SCHEMA_EXPECTED =
  'a schema of up to 40 lower-case letters, digits and underscores that begins with a letter, ' +
  "not public, not carillon_jobs, none of Postgres' own and no reserved word of Postgres"

export function isSchemaName(text: string): boolean {
  return SCHEMA.test(text) && !TAKEN.test(text) && !RESERVED_WORDS.has(text)
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
