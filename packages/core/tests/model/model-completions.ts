import type pg from 'pg'

import type { Db } from '../../src/db/database.ts'
import { transact } from '../../src/db/transact.ts'
import type { Clock } from '../../src/kernel/clock.ts'
import { Runs } from '../../src/ledger/completions.ts'
import type { Completion } from '../../src/ports/runs.ts'
import { lockAccountRows } from './model-hooks.ts'
import type { ModelCall } from './model-target.ts'
import type { SeededRandom } from './seeded-random.ts'

const COMPLETIONS: readonly Completion[] = [
  { outcome: 'succeeded', result: { by: 'completion' } },
  { outcome: 'failed', error: { code: 'elsewhere', message: 'it failed elsewhere' }, retryable: true },
  { outcome: 'failed', error: { code: 'elsewhere', message: 'it failed for good' }, retryable: false },
  { outcome: 'cancelled' },
]

/** Completes calls from elsewhere: early, late, twice, for attempts that are over, and within transactions of a module. */
export class ModelCompletions {
  readonly #db: Db
  readonly #clock: Clock
  readonly #random: SeededRandom
  readonly #runs: Runs
  /** How many completions were taken, by run. */
  readonly #taken = new Map<string, number>()
  /** How many may have been taken, because the answer was lost, by run. */
  readonly #doubtful = new Map<string, number>()

  constructor(db: Db, clock: Clock, random: SeededRandom) {
    this.#db = db
    this.#clock = clock
    this.#random = random
    this.#runs = new Runs({ db, clock, by: 'module:model' })
  }

  async complete(call: ModelCall): Promise<void> {
    const completion = this.#completion()
    await this.#counted([call.runId], async () => {
      const { kind } = await this.#runs.complete(null, call, completion)
      return kind === 'taken' ? [call.runId] : []
    })
  }

  /** As a module does that holds rows of its own, which its hooks lock as well. */
  async completeWithin(calls: readonly ModelCall[], accounts: readonly number[]): Promise<void> {
    const inOrder = calls.toSorted((a, b) => (a.runId < b.runId ? -1 : 1))
    const completions = inOrder.map(() => this.#completion())
    await this.#counted(
      inOrder.map(({ runId }) => runId),
      () =>
        transact(this.#db, this.#clock, async (tx) => {
          await lockAccountRows(tx, accounts)
          const taken: string[] = []
          for (const [index, call] of inOrder.entries()) {
            const { kind } = await this.#runs.complete(tx, call, completions[index] ?? { outcome: 'cancelled' })
            if (kind === 'taken') taken.push(call.runId)
          }
          return taken
        }),
    )
  }

  async beat({ runId }: ModelCall): Promise<void> {
    await this.#runs.heartbeat(null, { runId }, 1000 + this.#random.below(30_000))
  }

  /** Runs whose ledger does not show the completions that were taken. */
  async findUndecided(pool: pg.Pool): Promise<string[]> {
    const { rows } = await pool.query<{ id: string; completed: number }>(`
      select runs.id, count(attempts.completed_by)::integer as completed
      from carillon.runs
      left join carillon.attempts
        on attempts.schedule_id = runs.schedule_id and attempts.scheduled_for = runs.scheduled_for
      group by runs.id`)
    return rows.flatMap(({ id, completed }) => {
      const least = this.#taken.get(id) ?? 0
      const most = least + (this.#doubtful.get(id) ?? 0)
      return completed >= least && completed <= most
        ? []
        : [`${id}: ${completed} attempts were completed, and ${least} to ${most} completions were taken`]
    })
  }

  get counts(): { readonly taken: number; readonly doubtful: number } {
    const sum = (map: ReadonlyMap<string, number>): number => map.values().reduce((total, count) => total + count, 0)
    return { taken: sum(this.#taken), doubtful: sum(this.#doubtful) }
  }

  #completion(): Completion {
    return this.#random.pick(COMPLETIONS) ?? { outcome: 'cancelled' }
  }

  /** Counts what was taken, and what may have been if the answer was lost. */
  async #counted(runIds: readonly string[], work: () => Promise<readonly string[]>): Promise<void> {
    try {
      for (const runId of await work()) add(this.#taken, runId)
    } catch (error) {
      for (const runId of runIds) add(this.#doubtful, runId)
      throw error
    }
  }
}

function add(counts: Map<string, number>, runId: string): void {
  counts.set(runId, (counts.get(runId) ?? 0) + 1)
}
