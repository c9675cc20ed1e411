import { nowMs, within } from '../clock.ts'
import { dueAfterLoading, requireWaiting } from '../lead-time.ts'
import { insertSchedules, settleDown } from '../load-schedules.ts'
import { drainOf, Tally } from '../peers/tally.ts'
import type { Reading, Work } from '../work.ts'
import { openPool, type BenchPool } from './bench-pool.ts'
import { startCarillon } from './carillon-worker.ts'
import { NOOP, noopTarget } from './noop-target.ts'
import { requireWholeLedger } from './written-rows.ts'

const HERD = 'herd'
const BYSTANDERS = 100
const PATIENCE_MS = 60_000
const NOTE =
  'the two tenants are in two lanes; a tenant whose name hashes to the lane of the herd, one of 64, waits with it'

export const herdWork: Work<'herd'> = {
  name: 'herd',
  title: 'A herd beside a bystander',
  async measure(bench, { count }) {
    const part = {
      subject: 'Carillon',
      size: count,
      measure: ({ postgresUrl }: { postgresUrl: string }) => measureHerd(postgresUrl, count),
    }
    await bench.interleave([part], { isMigrated: true })
  },
}

async function measureHerd(url: string, count: number): Promise<Reading[]> {
  await using pool = openPool(url)
  const bystander = await bystanderOf(pool)
  const dueAt = dueAfterLoading(count)
  const slot = { kind: NOOP, firstSlotAt: dueAt, spacingMs: 0, tenants: 1 }
  await insertSchedules(pool, { ...slot, count, tenant: HERD })
  await insertSchedules(pool, { ...slot, count: 1, tenant: bystander })
  await settleDown(pool)
  const [calls, ends] = [new Tally(count), new Tally(count)]
  const bystanding = Promise.withResolvers<number>()
  await using worker = await startCarillon(
    url,
    noopTarget(({ tenantId }) => {
      if (tenantId === `${bystander}-0`) bystanding.resolve(nowMs() - dueAt)
      else calls.note()
    }),
  )
  worker.events.on('attempt.settled', ({ tenantId }) => {
    if (tenantId === `${HERD}-0`) ends.note()
  })
  requireWaiting(dueAt)
  const both = Promise.all([bystanding.promise, ends.complete])
  const [bystanderMs] = await within(Promise.race([both, worker.failed]), dueAt + PATIENCE_MS)
  await requireWholeLedger(pool, count, HERD)
  const { seconds } = drainOf({ count, dueAt, firstAt: calls.firstAt, lastAt: ends.lastAt })
  return [
    { metric: 'bystanderMs', unit: 'ms', value: bystanderMs, note: NOTE },
    { metric: 'slotsPerSecond', unit: '/s', value: count / seconds },
  ]
}

/** Returns a prefix for tenants whose lane differs from the herd's. */
async function bystanderOf(pool: BenchPool): Promise<string> {
  const { rows } = await pool.query<{ name: string }>(
    `select name from generate_series(1, $2::int) as n, concat('bystander', n) as name
    where carillon.lane_of($3, name || '-0') <> carillon.lane_of($3, $1 || '-0')
    limit 1`,
    [HERD, BYSTANDERS, NOOP],
  )
  const [first] = rows
  if (first === undefined) throw new Error('expected a tenant in another lane than the herd, got none')
  return first.name
}
