import type { Tx } from '../../src/db/database.ts'
import type { Admission, AttemptEnd, Candidate } from '../../src/ports/target.ts'
import type { Pipeline } from '../pipeline.ts'
import type { TestSpec } from '../scripted-target.ts'

/** A table of a module, which its hooks write: one row per call of a hook and run. */
const TABLE = `
  create table if not exists carillon.test_hook_rows (
    id bigint generated always as identity, hook text not null, run_id uuid not null, what text not null
  );
  grant select, insert, update, delete on carillon.test_hook_rows to carillon_worker;
  truncate carillon.test_hook_rows`

export type Candidates = readonly Candidate<TestSpec>[]
export type Ends = readonly AttemptEnd<TestSpec>[]

export const ADMITTED: Admission = { kind: 'admitted' }

/** Hooks that note each candidate and each end in a table. Set before a worker is made. */
export async function noteHooks({ database, target }: Pipeline): Promise<void> {
  await database.pool.query(TABLE)
  target.admit = async (tx, candidates) => {
    await noteCandidates(tx, candidates)
    return candidates.map(() => ADMITTED)
  }
  target.settled = noteEnds
}

export async function noteCandidates(tx: Tx, candidates: Candidates): Promise<void> {
  for (const { runId, attempt } of candidates) await note(tx, 'admit', runId, `attempt ${attempt}`)
}

export async function noteEnds(tx: Tx, ends: Ends): Promise<void> {
  for (const { runId, ending, state } of ends) await note(tx, 'settled', runId, `${ending}: ${state}`)
}

export async function note(tx: Tx, hook: string, runId: string, what: string): Promise<void> {
  await tx.run({
    text: 'insert into test_hook_rows (hook, run_id, what) values ($1, $2, $3)',
    parameters: [hook, runId, what],
  })
}

/** What the hooks wrote and what was committed, in order: `admit attempt 1`. */
export async function notesOf({ database }: Pipeline): Promise<string[]> {
  const { rows } = await database.pool.query<{ text: string }>(
    `select hook || ' ' || what as text from carillon.test_hook_rows order by id`,
  )
  return rows.map(({ text }) => text)
}
