import { setTimeout as sleep } from 'node:timers/promises'

import type { createPool } from '@carillon/core'

type Pool = ReturnType<typeof createPool>

/** A row that waited, and for how long after the faults ended. */
export interface Wait {
  readonly what: string
  readonly forMs: number
}

/** A run that has not ended, a due slot without a line, or a backlog of lines. */
export interface OpenRow {
  readonly key: string
  /** Changes whenever the run or the schedule makes progress. */
  readonly progress: string
  readonly what: string
}

interface Seen extends OpenRow {
  readonly since: number
}

const LOOK_EVERY_MS = 250

/** Remembers since when each open row is unchanged. */
export class WaitTracker {
  readonly #from: number
  #seen: ReadonlyMap<string, Seen> | undefined
  #longest: Wait = { what: 'nothing', forMs: 0 }

  /** @param from the end of the faults, in epoch milliseconds. Rows that are open at the first look have waited since then. */
  constructor(from: number) {
    this.#from = from
  }

  get longest(): Wait {
    return this.#longest
  }

  /** @returns the open rows, by key */
  note(rows: readonly OpenRow[], now: number): ReadonlyMap<string, Seen> {
    const changedAt = this.#seen === undefined ? this.#from : now
    const seen = new Map(
      rows.map((row) => {
        const before = this.#seen?.get(row.key)
        return [row.key, { ...row, since: before?.progress === row.progress ? before.since : changedAt }]
      }),
    )
    for (const { what, since } of seen.values()) {
      if (now - since > this.#longest.forMs) this.#longest = { what, forMs: now - since }
    }
    this.#seen = seen
    return seen
  }

  /** The rows that were open at the last look, the longest wait first. */
  waiting(now: number): readonly Wait[] {
    const waits = [...(this.#seen?.values() ?? [])].map(({ what, since }) => ({ what, forMs: now - since }))
    return waits.toSorted((a, b) => b.forMs - a.forMs)
  }
}

/**
 * Watches all open rows from the end of the faults on. In this workload no target takes longer than 3 s and no backoff is longer than 2 s.
 * So a run that stays in one state at one attempt for long is stuck, and so is a due slot without a line.
 */
export class WaitWatch {
  readonly #pool: Pool
  readonly #tracker: WaitTracker

  constructor(pool: Pool, from: number) {
    this.#pool = pool
    this.#tracker = new WaitTracker(from)
  }

  get longest(): Wait {
    return this.#tracker.longest
  }

  get waiting(): readonly Wait[] {
    return this.#tracker.waiting(Date.now())
  }

  /** Watches for at least `leastMs`, then until every row of the first look has made progress, or until the limit. */
  async whileAnyWaits(leastMs: number, limitMs: number): Promise<void> {
    const least = AbortSignal.timeout(leastMs)
    const limit = AbortSignal.timeout(limitMs)
    const first = await this.#look()
    for (let now = first; ; now = await this.#look()) {
      const areOnTheirWay = [...first].every(([key, { progress }]) => now.get(key)?.progress !== progress)
      if (limit.aborted || (least.aborted && areOnTheirWay)) return
      await sleep(LOOK_EVERY_MS)
    }
  }

  /** Watches until no row is open, or until the limit. */
  async untilNothingIsOpen(limitMs: number): Promise<void> {
    const limit = AbortSignal.timeout(limitMs)
    while ((await this.#look()).size > 0 && !limit.aborted) await sleep(LOOK_EVERY_MS)
  }

  async #look(): Promise<ReadonlyMap<string, OpenRow>> {
    const { rows } = await this.#pool.query<OpenRow>(OPEN)
    const backlogs = (await this.#hasBacklogs()) ? (await this.#pool.query<OpenRow>(OPEN_BACKLOGS)).rows : []
    return this.#tracker.note([...rows, ...backlogs], Date.now())
  }

  async #hasBacklogs(): Promise<boolean> {
    const { rows } = await this.#pool.query(`select where to_regclass('carillon.slot_backlogs') is not null`)
    return rows.length > 0
  }
}

const OPEN = `
  select schedule_id::text || scheduled_for::text as key, state::text || attempt_count::text as progress,
    'run ' || id::text || ' is ' || state::text || ' after ' || attempt_count::text || ' attempts' as what
  from carillon.runs
  where completed_at is null
  union all
  select id::text, next_slot_at::text, 'schedule ' || id::text || ' is due since ' || next_slot_at::text
  from carillon.schedules
  where state = 'active' and next_slot_at < now()`

/** Older versions do not have the table. */
const OPEN_BACKLOGS = `
  select 'backlog' || schedule_id::text || until::text as key, next_slot_at::text as progress,
    'schedule ' || schedule_id::text || ' has lines to be written since ' || next_slot_at::text as what
  from carillon.slot_backlogs`
