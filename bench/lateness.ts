/**
 * How late are sparse slots, with few and with very many schedules held? One worker, one Postgres at its default
 * durability, a target that does nothing. Run: `npm run bench:lateness`. Takes about four minutes, most of it loading.
 *
 * Measured: from the nominal slot to the call of the target, by the clock of the one machine. Not measured: a network
 * between worker and Postgres, a busy machine, a target that takes time.
 */
import { createPool, Worker, type Target } from '@carillon/core'
import { z } from 'zod'

import { startBenchPostgres } from './bench-postgres.ts'
import { loadSchedules } from './load-schedules.ts'
import { percentile } from './percentile.ts'

const HELD = (process.argv[2] ?? '10000,1000000').split(',').map(Number)
const SLOTS = Number(process.argv[3] ?? 300)
const SPACING_MS = 97
/** Not counted: the first statements on a connection are planned. */
const WARM_UP = 20

function nowMs(): number {
  return performance.timeOrigin + performance.now()
}

/** A target that notes how late it was called. */
function listeningTarget(lateness: number[], done: () => void): Target {
  const schema = z.looseObject({ kind: z.string() })
  return {
    kind: 'noop',
    schema,
    retry: { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 },
    requiredScope: () => 'noop:call:nothing',
    timeoutMs: () => 30_000,
    dispatch: (context) => {
      lateness.push(nowMs() - context.scheduledFor)
      if (lateness.length === WARM_UP + SLOTS) done()
      return Promise.resolve({ kind: 'succeeded', result: null })
    },
  }
}

async function measure(url: string, held: number): Promise<void> {
  const pool = createPool({ connectionString: url })
  await loadSchedules(pool, { count: held, kind: 'noop', firstSlotAt: Date.now() + 365 * 86_400_000, spacingMs: 1000 })
  const lateness: number[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  await using worker = new Worker({ databaseUrl: url, targets: [listeningTarget(lateness, resolve)] })
  await worker.start()
  const firstSlotAt = Date.now() + 3000
  await loadSchedules(pool, { count: WARM_UP + SLOTS, kind: 'noop', firstSlotAt, spacingMs: SPACING_MS })
  await promise
  await pool.end()
  const sorted = lateness.slice(WARM_UP).toSorted((a, b) => a - b)
  const [p50, p99, max] = [50, 99, 100].map((share) => percentile(sorted, share).toFixed(1))
  process.stdout.write(
    `${held} schedules held, ${sorted.length} sparse slots: p50 ${p50} ms, p99 ${p99} ms, max ${max} ms\n`,
  )
}

await using postgres = await startBenchPostgres()
for (const held of HELD) await measure(await postgres.createDatabase(`lateness_${held}`), held)
