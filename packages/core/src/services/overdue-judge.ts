import { lanesOf } from '../policy/lane-names.ts'
import { isPassedOver, type LivingWorker } from '../policy/overdue.ts'
import type { Tx } from '../store/database.ts'
import { findFirstDue, listLivingWorkers } from '../store/worker-room.ts'

/** A slot or a waiting run that is due. */
interface DueItem {
  readonly lane: string
  readonly dueAt: number
}

/** Tells what workers passed over from what waits behind full workers. */
export class OverdueJudge {
  readonly #workers: readonly LivingWorker[]
  readonly #first: Awaited<ReturnType<typeof findFirstDue>>
  readonly #now: number

  private constructor(workers: readonly LivingWorker[], first: Awaited<ReturnType<typeof findFirstDue>>, now: number) {
    this.#workers = workers
    this.#first = first
    this.#now = now
  }

  /** @param p.databaseNow an instant that a test names; null: Postgres' own */
  static async read(
    tx: Tx,
    p: { lanes: readonly string[]; now: number; databaseNow: Date | null },
  ): Promise<OverdueJudge> {
    const workers = (await listLivingWorkers(tx, { now: p.databaseNow })).map(
      ({ targetKinds, aliveForMs, fullMsAgo }) => ({
        lanes: new Set(lanesOf(targetKinds)),
        aliveForMs,
        roomForMs: fullMsAgo ?? Infinity,
      }),
    )
    const lanes = [...new Set(p.lanes)]
    const first = lanes.length === 0 ? new Map<string, never>() : await findFirstDue(tx, { lanes })
    return new OverdueJudge(workers, first, p.now)
  }

  isPassedOver({ lane, dueAt }: DueItem, what: 'slotAt' | 'runAt'): boolean {
    const isFirstInLane = this.#first.get(lane)?.[what] === dueAt
    return isPassedOver({ lane, overdueMs: this.#now - dueAt, isFirstInLane }, this.#workers)
  }

  /**
   * What to do so that a worker takes it.
   * @param isHeld another transaction holds the row of its schedule
   */
  remedy(lane: string, isHeld: boolean): string {
    if (isHeld) return 'another transaction holds the row of its schedule: see which one (pg_locks), and end it'
    if (this.#workers.some(({ lanes }) => lanes.has(lane))) {
      return 'see what the workers log, and whether a transaction holds the row of its schedule (pg_locks)'
    }
    // Lanes are named after their kind; see `lane_of` in the schema.
    const [targetKind = ''] = lane.split('.')
    if (!lanesOf([targetKind]).includes(lane)) {
      return `no worker looks at the lane ${lane}: see who wrote to the database by hand, and set it to carillon.lane_of(kind, tenant)`
    }
    return `start a worker that serves ${targetKind}`
  }
}
