import { createPool } from '@carillon/core'

import type { Creation } from '../measure.ts'
import { inTurn } from '../peers/in-turn.ts'
import type { Part, Work } from '../work.ts'
import { insertBareSchedules } from './bare-schedules.ts'
import { CALLER, dailyInput, openScheduler } from './scheduler.ts'
import { requireMade } from './written-rows.ts'

const BATCH = 1000
/** Two clients: the server checks one batch while it writes the other. */
const CLIENTS = 2

export const importWork: Work<'import'> = {
  name: 'import',
  title: 'Bulk import',
  async measure(bench, { count }) {
    const part = (subject: string, importAll: (url: string, count: number) => Promise<Creation>): Part => ({
      subject,
      size: count,
      async measure({ postgresUrl }) {
        const { seconds } = await importAll(postgresUrl, count)
        await requireMade(postgresUrl, count)
        return [{ metric: 'perSecond', unit: '/s', value: count / seconds, note: NOTE }]
      },
    })
    await bench.interleave([part('Carillon', importByLibrary), part('bare inserts', importBare)], { isMigrated: true })
  },
}

const NOTE = `batches of ${BATCH}, ${CLIENTS} of them at a time; each is one transaction`

async function importByLibrary(url: string, count: number): Promise<Creation> {
  await using open = openScheduler(url, CLIENTS)
  return await inTurn({ count: Math.ceil(count / BATCH), clients: CLIENTS }, (batch) =>
    open.scheduler.createMany(CALLER, numbersOf(batch, count).map(dailyInput)),
  )
}

async function importBare(url: string, count: number): Promise<Creation> {
  const pool = createPool({ connectionString: url, maxConnections: CLIENTS, isPrepared: true })
  try {
    return await inTurn({ count: Math.ceil(count / BATCH), clients: CLIENTS }, (batch) =>
      insertBareSchedules(pool, numbersOf(batch, count)),
    )
  } finally {
    await pool.end()
  }
}

function numbersOf(batch: number, count: number): number[] {
  const from = batch * BATCH
  return Array.from({ length: Math.min(BATCH, count - from) }, (_, n) => from + n)
}
