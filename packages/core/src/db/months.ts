import { boolean, columns, text } from './columns.ts'
import type { Queryable } from './database.ts'
import { sql } from './sql.ts'

/** The tables of the ledger. All are partitioned by the month of the slot in UTC. */
const LEDGER_TABLES = ['runs', 'attempts', 'transcripts'] as const

type LedgerTable = (typeof LEDGER_TABLES)[number]

/** The partition of one table for one month. */
export interface Partition {
  readonly table: LedgerTable
  /** The name of its table in the schema, such as `runs_2026_11`. */
  readonly name: string
  readonly from: Date
  /** The first instant after it. */
  readonly to: Date
}

/** Creates the missing partitions from the month of one instant to that of another. Returns their names. */
export async function ensurePartitions(db: Queryable, p: { from: Date; to: Date }): Promise<string[]> {
  const wanted = monthsBetween(p.from, p.to).flatMap((month) => LEDGER_TABLES.map((table) => partitionOf(table, month)))
  const created: string[] = []
  for (const partition of await findMissing(db, wanted)) {
    if (await createPartition(db, partition)) created.push(partition.name)
  }
  return created
}

/** All partitions of the ledger, oldest first. */
export async function listPartitions(db: Queryable): Promise<Partition[]> {
  const names = columns('child', {
    parent: text.as(sql`parent.relname::text`),
    name: text.as(sql`child.relname::text`),
  })
  const rows = await sql`
    select ${names}
    from pg_catalog.pg_inherits
    join pg_catalog.pg_class as parent on parent.oid = pg_inherits.inhparent
    join pg_catalog.pg_class as child on child.oid = pg_inherits.inhrelid
    join pg_catalog.pg_namespace on pg_namespace.oid = parent.relnamespace
    where pg_namespace.nspname = current_schema() and parent.relname = any(${[...LEDGER_TABLES]}::text[])`.execute(db)
  return rows
    .flatMap(({ parent, name }) => {
      const table = LEDGER_TABLES.find((known) => known === parent)
      const [, year, month] = /_(\d{4})_(\d{2})$/.exec(name) ?? []
      return table === undefined || month === undefined
        ? []
        : [partitionOf(table, Date.UTC(Number(year), Number(month) - 1))]
    })
    .toSorted(
      (a, b) => a.from.getTime() - b.from.getTime() || LEDGER_TABLES.indexOf(a.table) - LEDGER_TABLES.indexOf(b.table),
    )
}

/**
 * Drops the months that ended before an instant, with every run, attempt and transcript in them. Returns the names of their tables. A month
 * with an open run stays. Each month is dropped in its own transaction, which holds the lock on the tables for a short time.
 */
export async function dropPartitions(db: Queryable, p: { before: Date }): Promise<string[]> {
  const ended = (await listPartitions(db)).filter(({ to }) => to <= p.before)
  const dropped: string[] = []
  for (const [month, partitions] of Map.groupBy(ended, ({ from }) => dateOf(from))) {
    const dropMonth = sql`drop_month(${month}::date)`
    const [row] = await sql`select ${columns('month', { isDropped: boolean.as(dropMonth) })}`.execute(db)
    if (row?.isDropped === true) dropped.push(...partitions.map(({ name }) => name))
  }
  return dropped
}

/**
 * Calls a database function that runs as the ledger's owner, which neither the API nor a worker is. False if the partition exists, and if
 * there is no such table: a migration to an earlier version creates months too.
 */
async function createPartition(db: Queryable, { table, from }: Partition): Promise<boolean> {
  const createMonth = sql`create_month(${table}, ${dateOf(from)}::date)`
  const [row] = await sql`
    select ${columns('month', { isCreated: boolean.as(createMonth) })}
    where to_regclass(${table}) is not null`.execute(db)
  return row?.isCreated === true
}

async function findMissing(db: Queryable, wanted: readonly Partition[]): Promise<Partition[]> {
  const existing = new Set((await listPartitions(db)).map(({ name }) => name))
  return wanted.filter(({ name }) => !existing.has(name))
}

function dateOf(instant: Date): string {
  return instant.toISOString().slice(0, 10)
}

function partitionOf(table: LedgerTable, month: number): Partition {
  const from = new Date(month)
  const [year, number] = from.toISOString().split('-')
  return { table, name: `${table}_${year}_${number}`, from, to: new Date(nextMonth(month)) }
}

function monthsBetween(from: Date, to: Date): number[] {
  const months: number[] = []
  for (let month = startOfMonth(from); month <= to.getTime(); month = nextMonth(month)) months.push(month)
  return months
}

function startOfMonth(instant: Date): number {
  return Date.UTC(instant.getUTCFullYear(), instant.getUTCMonth())
}

function nextMonth(month: number): number {
  const date = new Date(month)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)
}
