import type pg from 'pg'

import type { Tx } from '../../src/db/database.ts'
import type { Admission, AttemptEnd, Candidate } from '../../src/ports/target.ts'
import type { SeededRandom } from './seeded-random.ts'

/** Rows of a module: what its hooks reserve and what they were told, and rows that both its hooks and its own code lock. */
const TABLES = `
  create table carillon.model_accounts (id integer primary key, calls integer not null);
  insert into carillon.model_accounts select account, 0 from generate_series(0, 2) as account;
  create table carillon.model_reservations (run_id uuid not null, attempt integer not null, primary key (run_id, attempt));
  create table carillon.model_ends (
    id bigint generated always as identity, run_id uuid not null, attempt integer not null, ending text not null, state text not null
  );
  grant select, insert, update, delete on carillon.model_accounts, carillon.model_reservations, carillon.model_ends to carillon_worker`

const ACCOUNTS = 3

export async function createModuleTables(pool: pg.Pool): Promise<void> {
  await pool.query(TABLES)
}

/** The row of the module that belongs to a schedule. */
function accountOf(scheduleId: string): number {
  return Number.parseInt(scheduleId.slice(-6), 16) % ACCOUNTS
}

/** Hooks that write and lock rows of a module, refuse and put off runs, and throw now and then. */
export class ModelHooks {
  readonly #random: SeededRandom
  readonly #now: () => number
  /** Whether the hooks only write. */
  isCalm = false

  constructor(random: SeededRandom, now: () => number) {
    this.#random = random
    this.#now = now
  }

  async admit(tx: Tx, candidates: readonly Candidate<{ kind: string }>[]): Promise<Admission[]> {
    await lockAccounts(tx, candidates)
    const answers: Admission[] = []
    for (const { runId, attempt } of candidates) {
      const answer = this.#answer()
      answers.push(answer)
      if (answer.kind === 'admitted') await reserve(tx, runId, attempt)
    }
    if (this.#fails()) throw new Error('the module throws')
    return answers
  }

  async settled(tx: Tx, ends: readonly AttemptEnd<{ kind: string }>[]): Promise<void> {
    await lockAccounts(tx, ends)
    for (const { runId, attempt, ending, state, error } of ends) {
      await tx.run({ text: 'delete from model_reservations where run_id = $1', parameters: [runId] })
      await tx.run({
        text: 'insert into model_ends (run_id, attempt, ending, state) values ($1, $2, $3, $4)',
        parameters: [runId, attempt, ending, state],
      })
      // The last call for a run that is given up must not fail, or the model could not tell what the module was told.
      if (error?.code === 'settle_failed') return
    }
    if (this.#fails()) throw new Error('the module throws')
  }

  #answer(): Admission {
    if (this.isCalm) return { kind: 'admitted' }
    switch (this.#random.weighted({ admit: 14, refuse: 1, defer: 1 })) {
      case 'admit':
        return { kind: 'admitted' }
      case 'refuse':
        return { kind: 'refused', reason: 'missed', isFailure: this.#random.chance(0.5) }
      case 'defer':
        return { kind: 'deferred', until: this.#now() + this.#random.below(30_000), why: 'the model says so' }
    }
  }

  #fails(): boolean {
    return !this.isCalm && this.#random.chance(0.03)
  }
}

async function lockAccounts(tx: Tx, runs: readonly { readonly scheduleId: string }[]): Promise<void> {
  const ids = [...new Set(runs.map(({ scheduleId }) => accountOf(scheduleId)))]
  await lockAccountRows(tx, ids)
}

/** Locks rows of the module, in order. */
export async function lockAccountRows(tx: Tx, ids: readonly number[]): Promise<void> {
  await tx.run({
    text: 'select from model_accounts where id = any($1::integer[]) order by id for update',
    parameters: [ids],
  })
  await tx.run({ text: 'update model_accounts set calls = calls + 1 where id = any($1::integer[])', parameters: [ids] })
}

async function reserve(tx: Tx, runId: string, attempt: number): Promise<void> {
  await tx.run({
    text: 'insert into model_reservations (run_id, attempt) values ($1, $2)',
    parameters: [runId, attempt],
  })
}

/** What is wrong with the rows of the module after all work has ended. */
export const MODULE_CHECKS: Readonly<Record<string, string>> = {
  'a reservation is left': 'select run_id, attempt from carillon.model_reservations',
  'an end did not reach its module once': `
    select runs.id, attempts.attempt, attempts.outcome, told.times
    from carillon.attempts
    join carillon.runs on runs.schedule_id = attempts.schedule_id and runs.scheduled_for = attempts.scheduled_for
    cross join lateral (
      select count(*)::integer as times
      from carillon.model_ends as ends
      where ends.run_id = runs.id and ends.attempt = attempts.attempt
        and ends.ending in ('succeeded', 'failed', 'cancelled', 'malformed', 'lost', 'timed_out')
    ) as told
    where told.times <> 1`,
  'an end reached the module that no attempt has': `
    select ends.run_id, ends.attempt, ends.ending
    from carillon.model_ends as ends
    where ends.ending in ('succeeded', 'failed', 'cancelled', 'malformed', 'lost', 'timed_out')
      and not exists (
        select
        from carillon.runs
        join carillon.attempts
          on attempts.schedule_id = runs.schedule_id and attempts.scheduled_for = runs.scheduled_for
        where runs.id = ends.run_id and attempts.attempt = ends.attempt
      )`,
}
