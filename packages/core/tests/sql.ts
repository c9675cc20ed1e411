import type { Queryable } from '../src/db/database.ts'
import { identifier, literal, rawSql, Sql } from '../src/db/sql.ts'

/**
 * A statement of a test, which says itself which rows it expects. Like `pool.query` of the driver it returns an object with the rows, whose
 * values are as the driver reads them: an instant is a `Date`, a count is a text.
 */
class TestStatement<Row> {
  readonly part: Sql

  constructor(part: Sql) {
    this.part = part
  }

  async execute(db: Queryable): Promise<{ rows: Row[] }> {
    return { rows: (await this.part.execute(db)) as Row[] }
  }
}

export function sql<Row = object>(strings: TemplateStringsArray, ...values: readonly unknown[]): TestStatement<Row> {
  return new TestStatement(
    new Sql(
      strings,
      values.map((value) => (value instanceof TestStatement ? value.part : value)),
    ),
  )
}

sql.raw = <Row = object>(text: string): TestStatement<Row> => new TestStatement(rawSql(text))
sql.id = identifier
sql.lit = literal
