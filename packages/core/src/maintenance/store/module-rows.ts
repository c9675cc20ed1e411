import { columns, integer, text } from '../../db/columns.ts'
import type { Tx } from '../../db/database.ts'
import { purgeOrder } from '../../db/module-lint.ts'
import { identifier, sql } from '../../db/sql.ts'
import type { Scope } from '../../kernel/scope.ts'
import { deleteRows, isOf } from './purge.ts'

const TABLE_COLUMNS = columns('tables', {
  name: text.as(sql`tables.relname::text`),
  references: text.list.as(sql`array(
    select referenced.relname::text
    from pg_catalog.pg_constraint as keys
    join pg_catalog.pg_class as referenced on referenced.oid = keys.confrelid
    where keys.conrelid = tables.oid and keys.contype = 'f' and keys.confdeltype <> 'c'
  )`),
})

/**
 * The tables of modules in the order in which their rows can be deleted, from the catalogue: a purge must also find those of a module that
 * this process does not know. Their migrations made sure that each has a tenant and a project.
 */
export async function listModuleTables(tx: Tx): Promise<readonly string[]> {
  const tables = await sql`
    select ${TABLE_COLUMNS}
    from pg_catalog.pg_class as tables
    where tables.relnamespace = current_schema()::regnamespace and tables.relkind in ('r', 'p') and not tables.relispartition
      and exists (select from modules where starts_with(tables.relname::text, modules.name || '_'))
    order by tables.relname`.execute(tx)
  return purgeOrder(
    tables.map(({ name, references }) => ({
      name,
      references: references.map((table) => ({ table, isCascade: false })),
    })),
  ).order
}

/** Like every statement of a purge, it names the project besides the row-level security that limits it (I9). */
export async function countModuleRows(tx: Tx, { table, ...scope }: Scope & { table: string }): Promise<number> {
  const [row] = await sql`
    select ${columns('rows', { count: integer.as(sql`count(*)::int`) })}
    from ${identifier(table)} as rows
    where ${isOf(scope)}`.execute(tx)
  return row?.count ?? 0
}

export function deleteModuleRows(
  tx: Tx,
  { table, ...portion }: Scope & { table: string; limit: number },
): Promise<number> {
  return deleteRows(tx, identifier(table), portion)
}
