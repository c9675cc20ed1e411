import { nowMs } from '../clock.ts'
import { insertSchedules, settleDown } from '../load-schedules.ts'
import type { Bench } from '../work.ts'
import { openPool } from './bench-pool.ts'
import { NOOP } from './noop-target.ts'
import { fillLedger } from './old-ledger.ts'

/** A database with schedules that do not come due. It is kept to the end of the run. */
interface HeldSchedules extends AsyncDisposable {
  readonly url: string
  /** Writes this many rows of old runs, unless they exist. */
  needLedger(rows: number): Promise<void>
}

const YEAR_MS = 365 * 86_400_000
const SPACING_MS = 1000

/** Returns the URL of a database with this many schedules, and at least this many old rows in its ledger. */
export async function holdSchedules(bench: Bench, schedules: number, ledgerRows: number): Promise<string> {
  const held = await bench.shared(`held ${schedules}`, () => makeHeld(bench, schedules))
  if (ledgerRows > 0) await held.needLedger(ledgerRows)
  return held.url
}

async function makeHeld(bench: Bench, schedules: number): Promise<HeldSchedules> {
  bench.note(`loading ${schedules} schedules`)
  const database = await bench.createDatabase({ isMigrated: true })
  const { url } = database
  await insertHeld(url, schedules, bench.signal)
  let ledger: Promise<void> | undefined
  return {
    url,
    async needLedger(rows) {
      if (ledger === undefined) bench.note(`loading ${rows} rows of the ledger`)
      ledger ??= fillLedger(url, rows, bench.signal)
      await ledger
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

async function insertHeld(url: string, count: number, signal: AbortSignal): Promise<void> {
  await using pool = openPool(url)
  // The rows that these foreign keys refer to are in the same statement, and checking them takes half of the time.
  await pool.query('alter table carillon.schedule_revisions disable trigger all')
  const load = { count, kind: NOOP, firstSlotAt: nowMs() + YEAR_MS, spacingMs: SPACING_MS }
  await insertSchedules(pool, load, signal)
  await pool.query('alter table carillon.schedule_revisions enable trigger all')
  await settleDown(pool)
}

/** Removes the rows of a measurement, so that the next one starts from the same state. */
export async function removeTenants(url: string, tenant: string): Promise<void> {
  await using pool = openPool(url)
  const ids = `select id from carillon.schedules where starts_with(tenant_id, '${tenant}-')`
  for (const table of ['attempts', 'runs', 'schedule_revisions', 'execution_grants']) {
    await pool.query(`delete from carillon.${table} where schedule_id in (${ids})`)
  }
  await pool.query(`delete from carillon.schedules where starts_with(tenant_id, '${tenant}-')`)
  await pool.query('vacuum (analyze) carillon.runs')
  await pool.query('vacuum (analyze) carillon.attempts')
  await settleDown(pool)
}
