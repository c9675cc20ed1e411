import { nowMs, until } from '../clock.ts'
import type { Reading, Sizes, Work } from '../work.ts'
import { openPool, postmasterOf } from './bench-pool.ts'
import { Child } from './child.ts'
import { holdSchedules } from './held-schedules.ts'
import { cpuSecondsOf, cpuSecondsOfFamily, residentMegabytes } from './process-usage.ts'
import type { WorkerMessage } from './worker-process.ts'

/** After this many milliseconds a worker has sent a heartbeat and looked at the agenda, so its start is over. */
const SETTLE_MS = 5000
const NOTE = 'of the process of the worker alone, which holds no run'

export const idleWork: Work<'idle'> = {
  name: 'idle',
  title: 'Idle: nothing due',
  async measure(bench, sizes) {
    const url = await holdSchedules(bench, sizes.schedules, 0)
    const part = { subject: 'Carillon', size: sizes.schedules, measure: () => watch(url, sizes) }
    await bench.interleave([part], 'none')
  },
}

async function watch(url: string, { seconds }: Sizes['idle']): Promise<Reading[]> {
  await using pool = openPool(url)
  const postgres = await postmasterOf(pool)
  await using worker = await Child.start<WorkerMessage>('worker-process.ts', { url })
  let failure: string | null = null
  worker.onMessage((message) => (failure ??= message.failure))
  await Promise.race([until(nowMs() + Math.min(SETTLE_MS, seconds * 1000)), worker.failed])
  const before = { worker: cpuSecondsOf(worker.pid), postgres: cpuSecondsOfFamily(postgres), at: nowMs() }
  await Promise.race([until(before.at + seconds * 1000), worker.failed])
  const percent = (used: number): number => (100 * used * 1000) / (nowMs() - before.at)
  const readings: Reading[] = [
    { metric: 'cpuPercent', unit: '%', value: percent(cpuSecondsOf(worker.pid) - before.worker), note: NOTE },
    { metric: 'postgresCpuPercent', unit: '%', value: percent(cpuSecondsOfFamily(postgres) - before.postgres) },
    { metric: 'workerMegabytes', unit: 'MB', value: residentMegabytes(worker.pid) },
  ]
  if (failure !== null) throw new Error(failure)
  return readings
}
