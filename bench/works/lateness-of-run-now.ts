import { nowMs, until, within } from '../clock.ts'
import { loadSchedules } from '../load-schedules.ts'
import type { Lateness } from '../measure.ts'
import { openPool, type BenchPool } from './bench-pool.ts'
import { startCarillon } from './carillon-worker.ts'
import { NOOP, noopTarget } from './noop-target.ts'
import { openScheduler } from './scheduler.ts'
import { requireWholeLedger } from './written-rows.ts'

const TENANT = 'run-now'
const YEAR_MS = 365 * 86_400_000
/** After this many milliseconds the worker's first full look has ended, and it waits. */
const UP_MS = 1000
const PATIENCE_MS = 30_000

interface RunNowLateness {
  /** From the instant in the ledger from which the run may be taken. Postgres writes that instant before the commit. */
  readonly fromDue: Lateness
  /** From the commit, when its answer arrives at the library's connection. */
  readonly fromCommit: Lateness
  /** From the call of the library function. */
  readonly fromAsk: Lateness
}

interface Asked {
  readonly id: string
  readonly tenantId: string
}

/** Measures manual runs one after another, each of another schedule, while nothing else is due. The worker runs in this process. */
export async function latenessOfRunNow(
  url: string,
  { runs, spacingMs }: { runs: number; spacingMs: number },
): Promise<RunNowLateness> {
  await using pool = openPool(url)
  await loadSchedules(pool, { count: runs, kind: NOOP, firstSlotAt: nowMs() + YEAR_MS, spacingMs: 0, tenant: TENANT })
  let onCall: (calledAt: number) => void = () => undefined
  let onEnd: () => void = () => undefined
  await using worker = await startCarillon(
    url,
    noopTarget(() => {
      onCall(nowMs())
    }),
  )
  worker.events.on('attempt.settled', () => {
    onEnd()
  })
  await using open = openScheduler(url, 1)
  let committedAt: number | undefined
  open.onCommit(() => {
    // The first commit after the request is the run's commit. Later statements only read.
    committedAt ??= nowMs()
  })
  await until(nowMs() + UP_MS)
  const late = { fromDue: [] as number[], fromCommit: [] as number[], fromAsk: [] as number[] }
  for (const { id, tenantId } of await schedulesOf(pool)) {
    const [called, ended] = [Promise.withResolvers<number>(), Promise.withResolvers<void>()]
    onCall = called.resolve
    onEnd = ended.resolve
    committedAt = undefined
    const askedAt = nowMs()
    const ask = open.scheduler.runNow({ tenantId, projectId: 'default', subject: 'user:bench' }, id)
    const all = Promise.all([ask, called.promise, ended.promise])
    const [run, calledAt] = await within(Promise.race([all, worker.failed]), askedAt + PATIENCE_MS)
    late.fromDue.push(calledAt - run.begunAt)
    late.fromCommit.push(calledAt - (committedAt ?? -Infinity))
    late.fromAsk.push(calledAt - askedAt)
    await until(nowMs() + spacingMs)
  }
  await requireWholeLedger(pool, runs, TENANT)
  return late
}

async function schedulesOf(pool: BenchPool): Promise<Asked[]> {
  const { rows } = await pool.query<Asked>(
    `select id, tenant_id as "tenantId" from carillon.schedules where starts_with(tenant_id, $1 || '-') order by id`,
    [TENANT],
  )
  return rows
}
