import type { Mutation } from './mutation.ts'

/** Guards that keep two Carillons in one database apart, and a Carillon apart from an application. */
export const SCHEMA_NAME_MUTATIONS: readonly Mutation[] = [
  {
    guard: 'an advisory lock in one schema does not stop another schema',
    file: 'db/locks.ts',
    from: " # hashtext(current_schema()) # hashtext('${SCHEMA_DEFAULT}')",
    to: '',
    tests: ['tests/db/two-schemas.test.ts'],
  },
  {
    guard: 'the lock of a quota in one schema does not stop another schema',
    file: 'db/migrations/0011_any_schema.up.sql',
    from: "211947794 # hashtext(current_schema()) # hashtext('carillon')",
    to: '211947794',
    tests: ['tests/db/two-schemas.test.ts'],
  },
  {
    guard: 'a notification of what is due reaches the workers of its own schema only',
    file: 'db/notify.ts',
    from: "sql`current_schema() || '_agenda'`",
    to: "sql`'carillon_agenda'`",
    tests: ['tests/db/two-schemas.test.ts'],
  },
  {
    guard: 'a notification of what is cancelled reaches the workers of its own schema only',
    file: 'db/notify.ts',
    from: "sql`current_schema() || '_cancel'`",
    to: "sql`'carillon_cancel'`",
    tests: ['tests/db/two-schemas.test.ts'],
  },
  {
    guard: 'names are looked up in the schema that a Carillon was given',
    file: 'db/schema-name.ts',
    from: 'return `${schema}, pg_temp`',
    to: 'return schema && `${SCHEMA_DEFAULT}, pg_temp`',
    tests: ['tests/db/two-schemas.test.ts'],
  },
  {
    guard: 'a transaction on a pool without a search path sets one',
    file: 'db/database.ts',
    from: 'return this.#hasSearchPath ? begin : `${begin}; set local search_path = ${searchPath(this.schema)}`',
    to: 'return begin',
    tests: ['tests/db/two-schemas.test.ts'],
  },
  {
    guard: 'a Carillon in a schema of another name drops no schema of an application',
    file: 'db/migration-history.ts',
    from: 'text.replaceAll(JOBS_SCHEMA, NO_SCHEMA)',
    to: 'text.replaceAll(JOBS_SCHEMA, `${schema}_jobs`)',
    tests: ['tests/db/schema-name.test.ts'],
  },
  {
    guard: 'migrating refuses a schema with tables or functions of an application',
    file: 'db/migration-history.ts',
    from: 'if (rows[0]?.is_empty !== true) {',
    to: 'if (!rows[0]) {',
    tests: ['tests/db/schema-name.test.ts'],
  },
]
