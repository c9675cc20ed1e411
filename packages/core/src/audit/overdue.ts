import type { Tx } from '../db/database.ts'
import { lanesOf } from '../policy/lane-names.ts'
import { isPassedOver, type WorkerRoom } from '../policy/overdue.ts'
import { ROW_LOCKED_REMEDY } from './finding-texts.ts'
import { findFirstDue, listLiveWorkers } from './store/open-runs.ts'

type FirstDue = Awaited<ReturnType<typeof findFirstDue>>

/** Tells overdue work that workers pass over from overdue work that waits because every worker holds as many runs as it may. */
export class OverdueCheck {
  readonly #workers: readonly WorkerRoom[]
  readonly #first: FirstDue
  readonly #now: number

  private constructor(workers: readonly WorkerRoom[], first: FirstDue, now: number) {
    this.#workers = workers
    this.#first = first
    this.#now = now
  }

  /** @param p.databaseNow an instant that a test sets; null: Postgres' clock */
  static async read(
    tx: Tx,
    p: { lanes: readonly string[]; now: number; databaseNow: Date | null },
  ): Promise<OverdueCheck> {
    const workers = (await listLiveWorkers(tx, { now: p.databaseNow })).map(
      ({ targetKinds, aliveForMs, fullMsAgo }) => ({
        lanes: new Set(lanesOf(targetKinds)),
        aliveForMs,
        roomForMs: fullMsAgo ?? Infinity,
      }),
    )
    const lanes = [...new Set(p.lanes)]
    const first = lanes.length === 0 ? new Map<string, never>() : await findFirstDue(tx, { lanes })
    return new OverdueCheck(workers, first, p.now)
  }

  /** True if no worker takes a slot or a waiting run that is due, though the workers had time and capacity for it. */
  isStuck({ lane, dueAt }: { readonly lane: string; readonly dueAt: number }, what: 'slotAt' | 'runAt'): boolean {
    const isFirstInLane = this.#first.get(lane)?.[what] === dueAt
    return isPassedOver({ lane, overdueMs: this.#now - dueAt, isFirstInLane }, this.#workers)
  }

  /**
   * What an operator can do so that a worker takes the overdue slot or run.
   * @param isRowLocked another transaction holds the row of its schedule
   */
  remedy(lane: string, isRowLocked: boolean): string {
    if (isRowLocked) return ROW_LOCKED_REMEDY
    if (this.#workers.some(({ lanes }) => lanes.has(lane))) {
      return 'see what the workers log, and whether a transaction holds the row of its schedule (pg_locks)'
    }
    // A lane begins with its target kind; see `lane_of` in the schema.
    const [targetKind = ''] = lane.split('.')
    if (!lanesOf([targetKind]).includes(lane)) {
      return `no worker looks at the lane ${lane}: see who wrote to the database by hand, and set it to lane_of(kind, tenant), a function in Carillon's schema`
    }
    return `start a worker that serves ${targetKind}`
  }
}
