import { messageOf } from '@carillon/api'
import pg from 'pg'

import type { Column } from '../../src/db/columns.ts'
import type { Db, Tx } from '../../src/db/database.ts'
import { SCHEMA_DEFAULT, searchPath } from '../../src/db/schema-name.ts'
import type { Statement } from '../../src/db/sql.ts'

/** Stands for a database and for a transaction in it, whichever a function takes. */
export type DescribedDb = Db & Tx

/** Calls of functions that send statements. */
export type Samples = readonly ((db: DescribedDb) => Promise<unknown>)[]

/** A column as Postgres describes it. */
interface DescribedColumn {
  readonly name: string
  /** As Postgres writes the type: `uuid`, `run_state`, `text[]`. */
  readonly type: string
  /** Null for a computed column. */
  readonly isNullInTable: boolean | null
  /** The words of an enum; null for other types. */
  readonly words: readonly string[] | null
}

/** A statement whose columns are not those that Postgres describes. */
export interface Mismatch {
  readonly text: string
  readonly faults: readonly string[]
}

/**
 * Sends no statement: it asks Postgres to describe each one, and answers with one made-up row that has the columns which the statement
 * states. So a function that sends several statements goes on to the next one. Each statement is described by itself, outside of any
 * transaction.
 */
export class DescribingDb implements Tx {
  readonly isTransaction = true
  readonly schema = SCHEMA_DEFAULT
  readonly mismatches: Mismatch[] = []
  /** The statements that Postgres could describe. */
  readonly described = new Set<Statement>()
  readonly #client: pg.Client

  private constructor(client: pg.Client) {
    this.#client = client
  }

  static async connect(url: string): Promise<DescribingDb> {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    await client.query(`set search_path = ${searchPath(SCHEMA_DEFAULT)}`)
    return new DescribingDb(client)
  }

  get db(): DescribedDb {
    // `Db` has private members, so no other class can have its type.
    return this as unknown as DescribedDb
  }

  async run(statement: Statement): Promise<unknown[]> {
    const stated = statement.columns?.columns
    try {
      const found = await describe(this.#client, statement.text)
      this.described.add(statement)
      if (stated !== undefined) this.#report(statement, faultsOf(stated, found))
    } catch (error) {
      this.#report(statement, [messageOf(error)])
    }
    return stated === undefined ? [] : [Object.fromEntries(stated.map(({ name, column }) => [name, valueOf(column)]))]
  }

  /** Part of `Db`, which adds the search path here. */
  beginWith(begin: string): string {
    return begin
  }

  /** Part of `Db`, for functions that open a transaction themselves. */
  withConnection<Result>(work: (connection: object) => Promise<Result>): Promise<Result> {
    const run = async (statement: Statement): Promise<unknown[]> =>
      statement.text === 'begin' ? [] : this.run(statement)
    return work({ run, commit: async () => {}, rollBack: async () => {} })
  }

  end(): Promise<void> {
    return this.#client.end()
  }

  #report({ text }: Statement, faults: readonly string[]): void {
    if (faults.length > 0) this.mismatches.push({ text, faults })
  }
}

/** Describes statements as the database does, but answers each with these rows instead of a made-up one. */
export function answering(db: DescribedDb, rows: readonly object[]): DescribedDb {
  const run = async (statement: Statement): Promise<readonly object[]> => {
    await db.run(statement)
    return rows
  }
  return { isTransaction: true, schema: db.schema, run } as unknown as DescribedDb
}

interface StatedColumn {
  readonly name: string
  readonly column: Column
}

function faultsOf(stated: readonly StatedColumn[], found: readonly DescribedColumn[]): string[] {
  const twice = stated.filter(({ name }, index) => stated.findIndex((other) => other.name === name) < index)
  return [
    ...(stated.length === found.length ? [] : [`states ${stated.length} columns, returns ${found.length}`]),
    ...twice.map(({ name }) => `states ${name} twice`),
    ...stated.flatMap(({ name, column }, index) => {
      const described = found[index]
      if (described === undefined) return []
      if (described.name !== name) return [`states ${name}, returns ${described.name}`]
      return [...faultsOfType(column, described), ...faultsOfWords(column, described)].map(
        (fault) => `${name}: ${fault}`,
      )
    }),
  ]
}

/** `orNull` is right for any column: an outer join may find no row. */
function faultsOfType({ type, isNullable, isPresent }: Column, found: DescribedColumn): string[] {
  return [
    ...(type === found.type ? [] : [`states ${type}, returns ${found.type}`]),
    ...(found.isNullInTable === true && !isNullable && !isPresent ? ['may be null in its table'] : []),
    ...(isPresent && found.isNullInTable === false ? ['is present, but never null in its table'] : []),
    ...(isPresent && found.isNullInTable === null ? ['is present, but no column of a table'] : []),
  ]
}

function faultsOfWords({ words, isPartial }: Column, found: DescribedColumn): string[] {
  const unstated = isPartial ? [] : (found.words ?? []).filter((word) => words?.includes(word) !== true)
  const unknown = (words ?? []).filter((word) => found.words?.includes(word) !== true)
  return [
    ...unstated.map((word) => `does not state the word ${word}`),
    ...unknown.map((word) => `states the word ${word}, which Postgres does not know`),
  ]
}

const VALUES: Readonly<Record<string, unknown>> = {
  uuid: '01a1e263-ba7c-773f-bb62-baa33c3da8f2',
  text: 'text',
  boolean: true,
  json: {},
  bytea: Buffer.alloc(12),
  xid: '1',
  'timestamp with time zone': Date.UTC(2026, 0, 1),
}

function valueOf({ type, words, isNullable }: Column): unknown {
  if (isNullable) return null
  if (type.endsWith('[]')) return []
  return words?.[0] ?? VALUES[type] ?? 1
}

async function describe(client: pg.Client, text: string): Promise<DescribedColumn[]> {
  const fields = await client.query(new Description(text)).fields
  const { rows } = await client.query<Omit<DescribedColumn, 'name'>>(
    `select format_type(field.type, null) as type,
      (
        select not attnotnull from pg_catalog.pg_attribute where attrelid = field.relation and attnum = field.number
      ) as "isNullInTable",
      (select json_agg(enumlabel) from pg_catalog.pg_enum where enumtypid = field.type) as words
    from unnest($1::oid[], $2::oid[], $3::int[]) with ordinality as field(type, relation, number, ordinal)
    order by field.ordinal`,
    [
      fields.map(({ dataTypeID }) => dataTypeID),
      fields.map(({ tableID }) => tableID),
      fields.map(({ columnID }) => columnID),
    ],
  )
  return rows.map((row, index) => ({ ...row, name: fields[index]?.name ?? '' }))
}

/** Lets Postgres parse a statement and describe its columns, without running it. The driver calls the methods. */
class Description implements pg.Submittable {
  readonly fields: Promise<readonly pg.FieldDef[]>
  readonly #text: string
  readonly #answer = Promise.withResolvers<readonly pg.FieldDef[]>()

  constructor(text: string) {
    this.#text = text
    this.fields = this.#answer.promise
  }

  submit(connection: pg.Connection): void {
    connection.parse({ text: this.#text, name: '', types: [] }, true)
    connection.describe({ type: 'S', name: '' }, true)
    connection.sync()
  }

  handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    this.#answer.resolve(fields)
  }

  handleError(error: Error): void {
    this.#answer.reject(error)
  }

  handleReadyForQuery(): void {
    // A statement that returns no columns has no description. Otherwise the promise is settled by now.
    this.#answer.resolve([])
  }
}
