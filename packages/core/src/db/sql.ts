import pg from 'pg'

import { ColumnList, snakeCase, type SqlPart } from './columns.ts'

/** A statement as it is sent to Postgres. */
export interface Statement {
  readonly text: string
  readonly parameters: readonly unknown[]
  /** The columns of its rows; undefined if it states none: then its rows are not read. */
  readonly columns?: ColumnList
}

/** What a statement runs on. */
export interface Queryable {
  /** @returns the rows, as the columns of the statement describe them */
  run(statement: Statement): Promise<unknown[]>
}

/** The row of the one list of columns among the values of a template. */
type RowIn<Value> = Value extends ColumnList<infer Row> ? Row : Value extends Sql<infer Row> ? Row : never

/**
 * A statement, or a part of one: text with parameters between. `Row` is inferred from the list of columns in the text, so the columns
 * that Postgres returns and the type of a row are stated in one place. Without such a list nothing can be read from a row (`never`).
 */
export class Sql<out Row = unknown> implements SqlPart {
  readonly strings: readonly string[]
  readonly values: readonly unknown[]
  /** Only for the compiler. */
  declare readonly row?: Row

  constructor(strings: readonly string[], values: readonly unknown[] = []) {
    this.strings = strings
    this.values = values
  }

  /** Runs the statement and returns its rows. */
  async execute(db: Queryable): Promise<Row[]> {
    return (await db.run(this.compile())) as Row[]
  }

  /** @throws TypeError if the text contains two lists of columns: it would not be known which of them its rows have */
  compile(): Statement {
    const writer = new StatementWriter()
    writer.write(this)
    return writer.statement
  }
}

/** Writes a statement or a part of one. A value becomes a parameter, unless it is a part itself or a list of columns. */
export function sql<const Values extends readonly unknown[]>(
  strings: TemplateStringsArray,
  ...values: Values
): Sql<RowIn<Values[number]>> {
  return new Sql(strings, values)
}

/** Text of this code base that becomes part of a statement as it is. Never text that a caller sent. */
export function rawSql(text: string): Sql<never> {
  return new Sql([text])
}

/** The name of a table or a column, quoted. */
export function identifier(...names: readonly string[]): Sql<never> {
  return rawSql(names.map((name) => pg.escapeIdentifier(name)).join('.'))
}

/** A constant in the text of a statement, for where Postgres plans better if it knows the value. */
export function literal(text: string): Sql<never> {
  return rawSql(pg.escapeLiteral(text))
}

class StatementWriter {
  #text = ''
  readonly #parameters: unknown[] = []
  #columns: ColumnList | undefined

  get statement(): Statement {
    return { text: this.#text, parameters: this.#parameters, ...(this.#columns && { columns: this.#columns }) }
  }

  write({ strings, values }: SqlPart): void {
    for (const [index, text] of strings.entries()) {
      if (index > 0) this.#writeValue(values[index - 1])
      this.#text += text
    }
  }

  #writeValue(value: unknown): void {
    if (value instanceof Sql) {
      this.write(value)
    } else if (value instanceof ColumnList) {
      this.#writeColumns(value)
    } else {
      this.#parameters.push(value)
      this.#text += `$${this.#parameters.length}`
    }
  }

  #writeColumns(list: ColumnList): void {
    if (this.#columns !== undefined) throw new TypeError('expected one list of columns in a statement, got two')
    this.#columns = list
    for (const [index, { name, table, column }] of list.columns.entries()) {
      if (index > 0) this.#text += ', '
      const own = snakeCase(name)
      if (column.expression === undefined) this.#text += `${table}.${own}`
      else this.write(column.expression)
      if (column.expression !== undefined || own !== name) this.#text += ` as "${name}"`
    }
  }
}
