import { bigint, boolean, columns, integer } from '../../db/columns.ts'
import type { Db } from '../../db/database.ts'
import { stampOf } from '../../db/now.ts'
import { plainArray, quotedArray } from '../../db/parameters.ts'
import { sql, type Sql } from '../../db/sql.ts'
import type { HeldRun } from '../../ledger/held-run.ts'

/** A line that a transcript does not have yet. */
export interface NewTranscriptLine {
  /** Counts from 1 under one token. */
  readonly seq: number
  /** JSON text. */
  readonly entry: string
  /** How long ago it was recorded, in milliseconds. */
  readonly ageMs: number
}

type RunKey = Pick<HeldRun, 'scheduleId' | 'scheduledFor' | 'token'>

/** Lines of one attempt at one run. */
export interface TranscriptPart {
  readonly run: RunKey & Pick<HeldRun, 'attempt'>
  readonly lines: readonly NewTranscriptLine[]
}

/**
 * What became of a part. `written`: all its lines are stored, now or before. `fenced`: another worker holds the run, or it is over (I12).
 * `locked`: another transaction is writing the run at this moment.
 */
export type PartOutcome = 'written' | 'fenced' | 'locked'

/** What the transcript of a run has, from attempts before a token. */
export interface TranscriptTotals {
  readonly lines: number
  /** Of JSON text. */
  readonly bytes: number
  /** True if it has reached its limit. */
  readonly isTruncated: boolean
}

/**
 * I12: appends lines to the transcripts of runs that these workers hold. A line that is stored already is left as it is, so a part whose
 * answer was lost can be written again.
 *
 * Each run is locked, so that no line follows the settlement that ends its attempt. Runs that are locked already are passed over: another
 * transaction may hold them for long, and the lines of the other runs must not wait for it. The order of locks is runs before transcripts,
 * as in `drop_month`. `now` is null in production: Postgres' clock decides.
 */
export async function insertTranscripts(
  db: Db,
  p: { readonly parts: readonly TranscriptPart[]; readonly now: Date | null },
): Promise<PartOutcome[]> {
  const { parts } = p
  const lines = parts.flatMap((part, index) => part.lines.map((line) => ({ ...line, ordinal: index + 1 })))
  const outcome = columns('known', {
    ordinal: integer.as(sql`known.ordinal::integer`),
    isHeld: boolean.as(sql`exists (select from held where held.ordinal = known.ordinal)`),
  })
  const rows = await sql`
    with part as materialized (${givenRuns(parts)}), known as materialized (
      select part.ordinal
      from part
      join runs on ${isHeldBy()}
    ), held as materialized (
      select part.ordinal, part.token, part.attempt, runs.schedule_id, runs.scheduled_for, runs.tenant_id, runs.project_id
      from part
      join runs on ${isHeldBy()}
      for share of runs skip locked
    ), stamp as materialized (
      select ${stampOf(p.now)} as at
    ), written as (
      insert into transcripts (schedule_id, scheduled_for, token, seq, attempt, tenant_id, project_id, at, entry)
      select held.schedule_id, held.scheduled_for, held.token, line.seq, held.attempt, held.tenant_id, held.project_id,
        date_trunc('milliseconds', stamp.at - line.age_ms * interval '1 millisecond'), line.entry::json
      from unnest(
        ${plainArray(lines.map(({ ordinal }) => ordinal))}::integer[],
        ${plainArray(lines.map(({ seq }) => seq))}::integer[],
        ${plainArray(lines.map(({ ageMs }) => ageMs))}::double precision[],
        ${quotedArray(lines.map(({ entry }) => entry))}::text[]
      ) as line(ordinal, seq, age_ms, entry)
      join held on held.ordinal = line.ordinal
      cross join stamp
      on conflict do nothing
    )
    select ${outcome}
    from known`.execute(db)
  const outcomes = new Map(rows.map(({ ordinal, isHeld }) => [ordinal, isHeld ? 'written' : 'locked'] as const))
  return parts.map((_part, index) => outcomes.get(index + 1) ?? 'fenced')
}

/** What the transcripts of these runs have from earlier tokens. No earlier holder can add to it: each insert locks its run. */
export async function findEarlierTotals(
  db: Db,
  p: { readonly runs: readonly (RunKey & Pick<HeldRun, 'attempt'>)[] },
): Promise<TranscriptTotals[]> {
  const totals = columns('earlier', {
    ordinal: integer.as(sql`part.ordinal::integer`),
    lines: integer.as(sql`count(*)::integer`),
    bytes: bigint.as(sql`sum(octet_length(earlier.entry::text))`),
    isTruncated: boolean.as(sql`bool_or(earlier.entry ->> 'kind' = 'truncated')`),
  })
  const rows = await sql`
    with part as materialized (${givenRuns(p.runs.map((run) => ({ run })))})
    select ${totals}
    from part
    join transcripts as earlier
      on earlier.schedule_id = part.schedule_id and earlier.scheduled_for = part.scheduled_for and earlier.token < part.token
    group by part.ordinal`.execute(db)
  const found = new Map(rows.map(({ ordinal, ...row }) => [ordinal, row]))
  return p.runs.map((_run, index) => found.get(index + 1) ?? { lines: 0, bytes: 0, isTruncated: false })
}

function givenRuns(parts: readonly Pick<TranscriptPart, 'run'>[]): Sql<never> {
  return sql`
      select given.schedule_id, to_timestamp(given.slot / 1000.0) as scheduled_for, given.token, given.attempt, given.ordinal
      from unnest(
        ${plainArray(parts.map(({ run }) => run.scheduleId))}::uuid[],
        ${plainArray(parts.map(({ run }) => run.scheduledFor))}::double precision[],
        ${plainArray(parts.map(({ run }) => run.token))}::integer[],
        ${plainArray(parts.map(({ run }) => run.attempt))}::smallint[]
      ) with ordinality as given(schedule_id, slot, token, attempt, ordinal)
    `
}

/** True for the run of a part while the worker of its attempt holds it, or detached it. */
function isHeldBy(): Sql<never> {
  return sql`runs.schedule_id = part.schedule_id and runs.scheduled_for = part.scheduled_for and runs.token = part.token
        and runs.completed_at is null and runs.state in ('running', 'detached')`
}
