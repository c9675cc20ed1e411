import type pg from 'pg'

import type { Statement } from '../../src/db/sql.ts'

/**
 * For `onAnswer` of a test's `Db`: refuses a row with a null in a column that its statement declares as never null. Postgres does not
 * describe whether a computed column or a column of an outer join may be null. Only rows show it.
 */
export function refuseUndeclaredNulls({ text, columns }: Statement, { rows }: Pick<pg.QueryResult, 'rows'>): void {
  if (columns === undefined || rows.length === 0) return
  const names = columns.columns.filter(({ column }) => !column.isNullable).map(({ name }) => name)
  for (const row of rows as readonly Readonly<Record<string, unknown>>[]) {
    const found = names.find((name) => row[name] === null)
    if (found !== undefined) throw new Error(`${found} is null, but its column is not declared orNull, in: ${text}`)
  }
}
