import { sql, type Transaction } from 'kysely'

import { ADVISORY_LOCK_SPACE, ADVISORY_LOCKS } from './advisory-lock.ts'
import type { Db, Tx } from './database.ts'
import type { DB } from './schema.generated.ts'

/** The tables of the ledger. Both are cut by the slot's month, in UTC. */
const LEDGER_TABLES = ['runs', 'attempts'] as const

type LedgerTable = (typeof LEDGER_TABLES)[number]

/** One month of one table. */
export interface Partition {
  readonly table: LedgerTable
  /** `runs_2026_11`, in schema carillon. */
  readonly name: string
  readonly from: Date
  /** The first instant that is no longer in it. */
  readonly to: Date
}

/**
 * How long a change of partitions may wait for its lock. All the while the pipeline queues behind it, so it is short:
 * who asked hears SQLSTATE 55P03 and asks again.
 */
const LOCK_TIMEOUT_MS = 1000

/** Storage of a month. It cannot be set on the parent, which holds no rows. */
const STORAGE: Readonly<Record<LedgerTable, string>> = {
  // A run is rewritten two or three times soon after it was written: room for that beside it keeps its indexes untouched.
  runs: 'fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0',
  // An attempt is written once. Vacuumed early and often, it is frozen while it is still in memory.
  attempts: 'autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0',
}

/** Makes the months that are missing between two instants, both included; returns their names. */
export async function ensurePartitions(db: Db | Tx, p: { from: Date; to: Date }): Promise<string[]> {
  const wanted = monthsBetween(p.from, p.to).flatMap((month) => LEDGER_TABLES.map((table) => partitionOf(table, month)))
  const missing = await findMissing(db, wanted)
  if (missing.length === 0) return []
  return inTransaction(db, async (tx) => {
    await lockPartitions(tx)
    const created = await findMissing(tx, wanted)
    for (const partition of created) await createPartition(tx, partition)
    return created.map(({ name }) => name)
  })
}

/** All months there are, oldest first. */
export async function listPartitions(db: Db | Tx): Promise<Partition[]> {
  const { rows } = await sql<{ table: LedgerTable; name: string }>`
    select parent.relname as "table", child.relname as name
    from pg_catalog.pg_inherits
    join pg_catalog.pg_class as parent on parent.oid = pg_inherits.inhparent
    join pg_catalog.pg_class as child on child.oid = pg_inherits.inhrelid
    join pg_catalog.pg_namespace on pg_namespace.oid = parent.relnamespace
    where pg_namespace.nspname = 'carillon' and parent.relname = any(${[...LEDGER_TABLES]}::text[])`.execute(db)
  return rows
    .flatMap(({ table, name }) => {
      const [, year, month] = /_(\d{4})_(\d{2})$/.exec(name) ?? []
      return month === undefined ? [] : [partitionOf(table, Date.UTC(Number(year), Number(month) - 1))]
    })
    .toSorted(
      (a, b) => a.from.getTime() - b.from.getTime() || LEDGER_TABLES.indexOf(a.table) - LEDGER_TABLES.indexOf(b.table),
    )
}

/**
 * Drops the months that had ended by an instant, with every line of the ledger in them; returns their names. Each is
 * dropped in a transaction of its own: the lock on the whole table is held for one month's removal, not for all.
 */
export async function dropPartitions(db: Db | Tx, p: { before: Date }): Promise<string[]> {
  const ended = (await listPartitions(db)).filter(({ to }) => to <= p.before)
  const dropped: string[] = []
  for (const { name } of ended) {
    await inTransaction(db, async (tx) => {
      await lockPartitions(tx)
      await sql`drop table if exists ${sql.id('carillon', name)}`.execute(tx)
    })
    dropped.push(name)
  }
  return dropped
}

/**
 * A plain table that is attached. `create table … partition of` would lock the parent against every reader and writer;
 * attaching only keeps other changes of the table away. `like` brings the checks and indexes that attaching expects.
 */
async function createPartition(tx: Tx, { table, name, from, to }: Partition): Promise<void> {
  const parent = sql.id('carillon', table)
  const child = sql.id('carillon', name)
  await sql`create table ${child} (like ${parent} including all) with (${sql.raw(STORAGE[table])})`.execute(tx)
  await sql`
    alter table ${parent} attach partition ${child}
    for values from (${sql.lit(from.toISOString())}) to (${sql.lit(to.toISOString())})`.execute(tx)
}

async function findMissing(db: Db | Tx, wanted: readonly Partition[]): Promise<Partition[]> {
  const existing = new Set((await listPartitions(db)).map(({ name }) => name))
  return wanted.filter(({ name }) => !existing.has(name))
}

async function lockPartitions(tx: Tx): Promise<void> {
  await sql`select set_config('lock_timeout', ${String(LOCK_TIMEOUT_MS)}, true)`.execute(tx)
  await sql`select pg_advisory_xact_lock(${ADVISORY_LOCK_SPACE}::int, ${ADVISORY_LOCKS.partitions}::int)`.execute(tx)
}

/** In the caller's transaction, if there is one. */
function inTransaction<Result>(db: Db | Tx, work: (tx: Tx) => Promise<Result>): Promise<Result> {
  return db.isTransaction ? work(db as Transaction<DB>) : db.transaction().execute(work)
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
