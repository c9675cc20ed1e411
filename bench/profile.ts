/**
 * Shows where the time of a drain goes: the CPU microseconds of the worker and of Postgres for each slot, and the statements with the most
 * time. Run: `npm run bench:profile -- 20000`. With `--cpu-prof` in NODE_OPTIONS it also writes a profile of the worker. The recording has
 * a cost itself, so the rates are no results.
 */
import { startBenchPostgres } from './bench-postgres.ts'
import { insertSchedules, settleDown } from './load-schedules.ts'
import { Tally } from './peers/tally.ts'
import { openPool, type BenchPool } from './works/bench-pool.ts'
import { startCarillon } from './works/carillon-worker.ts'
import { NOOP, noopTarget } from './works/noop-target.ts'
import { cpuSecondsOfFamily, parentOf } from './works/process-usage.ts'

const COUNT = Number(process.argv[2] ?? 20_000)
const STATEMENTS_SHOWN = 12
/** The first round is slower, because statements are planned and code is compiled. */
const ROUNDS = 2

interface Statement {
  readonly calls: number
  readonly perSlot: number
  readonly text: string
}

async function drain(url: string): Promise<void> {
  await using pool = openPool(url)
  await pool.query('create extension pg_stat_statements')
  await insertSchedules(pool, { count: COUNT, kind: NOOP, firstSlotAt: Date.now() - 1000, spacingMs: 0 })
  await settleDown(pool)
  await pool.query('select pg_stat_statements_reset()')
  const postmaster = parentOf(await backendOf(pool))
  const ends = new Tally(COUNT)
  const [postgresFrom, workerFrom] = [cpuSecondsOfFamily(postmaster), process.cpuUsage()]
  await using worker = await startCarillon(url, noopTarget())
  const startedAt = performance.now()
  worker.events.on('attempt.settled', () => {
    ends.note()
  })
  await Promise.race([ends.complete, worker.failed])
  const seconds = (performance.now() - startedAt) / 1000
  const { user, system } = process.cpuUsage(workerFrom)
  const postgres = ((cpuSecondsOfFamily(postmaster) - postgresFrom) * 1e6) / COUNT
  print(`${Math.round(COUNT / seconds)} slots/s; CPU for each: worker ${((user + system) / COUNT).toFixed(0)} µs, `)
  print(`Postgres ${postgres.toFixed(0)} µs\n`)
  for (const { calls, perSlot, text } of await statementsOf(pool)) {
    print(`${perSlot.toFixed(1).padStart(7)} µs a slot, ${String(calls).padStart(6)} calls: ${text}\n`)
  }
}

async function backendOf(pool: BenchPool): Promise<number> {
  const { rows } = await pool.query<{ pid: number }>('select pg_backend_pid() as pid')
  return rows[0]?.pid ?? 0
}

async function statementsOf(pool: BenchPool): Promise<Statement[]> {
  const { rows } = await pool.query<Statement>(
    `select calls::int, total_exec_time * 1000 / $1::int as "perSlot",
      left(regexp_replace(query, '\\s+', ' ', 'g'), 100) as text
    from pg_stat_statements
    where dbid = (select oid from pg_database where datname = current_database())
    order by total_exec_time desc
    limit $2`,
    [COUNT, STATEMENTS_SHOWN],
  )
  return rows
}

function print(text: string): void {
  process.stdout.write(text)
}

await using postgres = await startBenchPostgres({ isWatched: true })
for (let round = 1; round <= ROUNDS; round += 1) await drain(await postgres.createDatabase(`profile_${round}`))
