import type { Part, Sizes, Work } from '../work.ts'
import { drainByCarillon, DRAIN_TENANT } from './drain-by-carillon.ts'
import { drainReadings } from './drain.ts'
import { holdSchedules, removeTenants } from './held-schedules.ts'
import { latenessOfCarillon, SPARSE_TENANT } from './lateness-of-carillon.ts'
import { quantiles, warmLateness } from './quantiles.ts'

const PATIENCE_MS = 60_000

export const scaleWork: Work<'scale'> = {
  name: 'scale',
  title: 'Drain and lateness with many schedules held',
  async measure(bench, sizes) {
    const parts: Part[] = []
    for (const { schedules, ledgerRows } of sizes.held) {
      const url = await holdSchedules(bench, schedules, ledgerRows)
      const note = `${ledgerRows} old rows in runs and attempts`
      parts.push({ subject: 'Carillon', size: schedules, measure: () => measureHeld(url, schedules, sizes, note) })
    }
    await bench.interleave(parts, 'none')
  },
}

async function measureHeld(
  url: string,
  held: number,
  sizes: Sizes['scale'],
  note: string,
): ReturnType<Part['measure']> {
  const drain = await drainByCarillon(url, { count: sizes.drained, patienceMs: PATIENCE_MS, held })
  await removeTenants(url, DRAIN_TENANT)
  const late = await warmLateness(sizes, (work) => latenessOfCarillon(url, work))
  await removeTenants(url, SPARSE_TENANT)
  const drained = `a drain of ${sizes.drained}; ${note}`
  return [...drainReadings(drain, drained), ...quantiles(late, `${sizes.slots} slots; ${note}`)]
}
