import type { Json } from '../kernel/json.ts'

/** A part of a statement, as `sql` makes it: text with values between. */
export interface SqlPart {
  readonly strings: readonly string[]
  readonly values: readonly unknown[]
}

type ColumnOptions = Pick<Column, 'isNullable' | 'expression' | 'isPresent' | 'words' | 'isPartial'>

/** A column of a row: its type in Postgres, and with it the type of its values here. */
export class Column<out Value = unknown> {
  /** As Postgres writes the type: `uuid`, `run_state`, `text[]`. */
  readonly type: string
  /** True if the column may be null. */
  readonly isNullable: boolean
  /** What the column is computed from. Undefined: the column of the same name, in snake case, of the list's table. */
  readonly expression: SqlPart | undefined
  /** True if the table allows null in the column, and the statement returns only rows in which it is not null. */
  readonly isPresent: boolean
  /** Of an enum: the words that the statement may return. */
  readonly words: readonly string[] | undefined
  /** True if the enum may have more words than these. */
  readonly isPartial: boolean
  /** Only for the compiler. */
  declare readonly value?: Value
  readonly #options: Partial<ColumnOptions>

  constructor(type: string, options: Partial<ColumnOptions> = {}) {
    this.type = type
    this.#options = options
    this.isNullable = options.isNullable ?? false
    this.expression = options.expression
    this.isPresent = options.isPresent ?? false
    this.words = options.words
    this.isPartial = options.isPartial ?? false
  }

  /** The same, or null. */
  get orNull(): Column<Value | null> {
    return new Column(this.type, { ...this.#options, isNullable: true })
  }

  /** For a column that may be null in its table. The statement returns only rows in which the column is not null. */
  get present(): Column<Value> {
    return new Column(this.type, { ...this.#options, isPresent: true })
  }

  /** Of an enum: this statement returns only these of its words. */
  only<const Word extends Value & string>(words: readonly Word[]): Column<Word> {
    return new Column(this.type, { ...this.#options, words, isPartial: true })
  }

  /** Of an enum to which modules add words of their own. */
  get orOther(): Column<Value | (string & {})> {
    return new Column(this.type, { ...this.#options, isPartial: true })
  }

  /** An array of such values. */
  get list(): Column<readonly Value[]> {
    return new Column(`${this.type}[]`, this.#options)
  }

  /** Computed from an expression, or taken from a column of another table or name. */
  as(expression: SqlPart): Column<Value> {
    return new Column(this.type, { ...this.#options, expression })
  }
}

export const uuid = new Column<string>('uuid')
export const text = new Column<string>('text')
export const boolean = new Column<boolean>('boolean')
export const smallint = new Column<number>('smallint')
export const integer = new Column<number>('integer')
/** Read as a number: no count of Carillon reaches 2^53. */
export const bigint = new Column<number>('bigint')
export const double = new Column<number>('double precision')
/** Epoch milliseconds. */
export const instant = new Column<number>('timestamp with time zone')
export const bytes = new Column<Buffer>('bytea')
/** The version of a row, for comparing it with a later one. */
export const rowVersion = new Column<string>('xid')

/** JSON, parsed. Carillon wrote it, so its shape is known and not checked again. */
export function json<Value = Json>(): Column<Value> {
  return new Column('json')
}

/** Text that the statement itself writes, so that it is one of a few words. */
export function textOf<Word extends string>(): Column<Word> {
  return new Column('text')
}

/** A value of an enum of Postgres. */
export function word<const Word extends string>(type: string, words: readonly Word[]): Column<Word> {
  return new Column(type, { words })
}

type RowOf<Spec extends Readonly<Record<string, Column>>> = {
  readonly [Name in keyof Spec]: Spec[Name] extends Column<infer Value> ? Value : never
}

/** A column of a list, with the table to which it belongs if it has no expression. */
interface ListedColumn {
  readonly name: string
  readonly table: string
  readonly column: Column
}

/** The columns that a statement returns, in their order: the text of `select` or `returning`, and the type of a row. */
export class ColumnList<out Row = unknown> {
  readonly columns: readonly ListedColumn[]
  /** Only for the compiler. */
  declare readonly row?: Row

  constructor(columns: readonly ListedColumn[]) {
    this.columns = columns
  }

  /** The same columns where an outer join may find no row. */
  get orNull(): ColumnList<{ readonly [Name in keyof Row]: Row[Name] | null }> {
    return new ColumnList(this.columns.map((listed) => ({ ...listed, column: listed.column.orNull })))
  }

  /** These columns and some of another table. */
  with<const Spec extends Readonly<Record<string, Column>>>(table: string, spec: Spec): ColumnList<Row & RowOf<Spec>> {
    return new ColumnList([...this.columns, ...listed(table, spec)])
  }
}

/** The row of a list of columns: `RowFrom<typeof RUN_COLUMNS>`. */
export type RowFrom<List> = List extends ColumnList<infer Row> ? Row : never

/**
 * Lists columns by the names that they have here. `scheduledFor` is the column `scheduled_for` of the table, which is named as the
 * statement names it.
 */
export function columns<const Spec extends Readonly<Record<string, Column>>>(
  table: string,
  spec: Spec,
): ColumnList<RowOf<Spec>> {
  return new ColumnList(listed(table, spec))
}

function listed(table: string, spec: Readonly<Record<string, Column>>): ListedColumn[] {
  return Object.entries(spec).map(([name, column]) => ({ name, table, column }))
}

/** `scheduledFor` is `scheduled_for` in Postgres. */
export function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}
