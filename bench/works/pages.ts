import { createPool } from '@carillon/core'

import { nowMs } from '../clock.ts'
import type { Reading, Work } from '../work.ts'
import { openPool, type BenchPool } from './bench-pool.ts'
import { holdSchedules } from './held-schedules.ts'
import { HISTORIES } from './old-ledger.ts'
import { quantiles } from './quantiles.ts'
import { explainPage, recordingScheduler, type Scheduler } from './recorded-pages.ts'

/** A schedule at a random position of its project's list, and one of its slots. */
interface Place {
  readonly id: string
  readonly tenantId: string
  readonly name: string
  readonly slot: number
}

interface Page {
  readonly subject: string
  readonly note: string
  /** The share of positions that are read, if one page is expensive. @default 1 */
  readonly share?: number
  read(scheduler: Scheduler, place: Place): Promise<readonly unknown[]>
}

const PAGES: readonly Page[] = [
  {
    subject: 'list of schedules',
    note: 'through the library, 50 from a random place on',
    read: (scheduler, place) => scheduler.list(callerOf(place), { before: place.id }),
  },
  {
    subject: 'searched list',
    note: 'through the library, the first 50 whose names contain a number; few do, so the whole project is looked through; a fifth of the places of the others',
    share: 0.2,
    read: (scheduler, place) => scheduler.list(callerOf(place), { nameContains: place.name.replace('schedule ', '') }),
  },
  {
    subject: 'runs of a schedule',
    note: 'through the library, the 50 before a random slot',
    read: (scheduler, place) => scheduler.listRuns(callerOf(place), place.id, { before: place.slot }),
  },
]

export const pagesWork: Work<'pages'> = {
  name: 'pages',
  title: 'Pages at scale',
  async measure(bench, { schedules, ledgerRows, requests }) {
    const url = await holdSchedules(bench, schedules, ledgerRows)
    await using admin = openPool(url)
    const places = await placesOf(admin, requests)
    const parts = PAGES.map((page) => ({
      subject: page.subject,
      size: schedules,
      measure: () => readPages(url, page, places.slice(0, Math.ceil(requests * (page.share ?? 1)))),
    }))
    await bench.interleave(parts, 'none')
    const [place] = places
    if (place === undefined) throw new Error('expected schedules with runs, got none')
    for (const page of PAGES) {
      bench.plan(
        await explainPage(url, page.subject, {
          caller: callerOf(place),
          read: (scheduler) => page.read(scheduler, place),
        }),
      )
    }
  },
}

/** Reads pages one after another, on one connection that plans each statement every time, as the server's connections do. */
async function readPages(url: string, page: Page, places: readonly Place[]): Promise<readonly Reading[]> {
  const pool = createPool({ connectionString: url, maxConnections: 1 })
  const { scheduler } = recordingScheduler(pool)
  try {
    const times: number[] = []
    for (const place of places) {
      const startedAt = nowMs()
      await page.read(scheduler, place)
      times.push(nowMs() - startedAt)
    }
    return quantiles(times, page.note)
  } finally {
    await pool.end()
  }
}

function callerOf({ tenantId }: Place): { tenantId: string; projectId: string; subject: string } {
  return { tenantId, projectId: 'default', subject: 'user:bench' }
}

/** Random schedules among those with a history. */
async function placesOf(pool: BenchPool, count: number): Promise<Place[]> {
  const { rows } = await pool.query<Place>(
    `select history.id, history.tenant_id as "tenantId", name,
      extract(epoch from now() - random() * interval '40 days')::float8 * 1000 as slot
    from (select * from ${HISTORIES}, generate_series(1, $1::int) order by random() limit $1) as history
    join carillon.schedule_revisions on schedule_id = history.id and revision = 1`,
    [count],
  )
  return rows.map((row) => ({ ...row, slot: Math.floor(row.slot) }))
}
