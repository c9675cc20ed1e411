import { TRANSCRIPT_PAGE_MAX_BYTES } from '@carillon/api'

import { boolean, columns, instant, integer, json, smallint } from '../../db/columns.ts'
import type { Tx } from '../../db/database.ts'
import { sql } from '../../db/sql.ts'
import type { Json } from '../../kernel/json.ts'
import type { Scope } from '../../kernel/scope.ts'

/** Where a line stands in the transcript of its run. */
export interface TranscriptPosition {
  /** Of the run, while the worker that wrote the line held it. */
  readonly token: number
  /** Counts from 1 under one token. */
  readonly seq: number
}

export interface StoredLine extends TranscriptPosition {
  readonly attempt: number
  readonly at: number
  readonly entry: { readonly kind: string } & Readonly<Record<string, Json>>
  /** True for the last line that was found. */
  readonly isLast: boolean
}

const LINE_COLUMNS = columns('page', {
  token: integer,
  seq: integer,
  attempt: smallint,
  at: instant,
  entry: json<StoredLine['entry']>(),
  isLast: boolean.as(sql`page.ordinal = page.found`),
})

/**
 * The lines of a run after a position, in order: at most `limit`, and only as many as fit `TRANSCRIPT_PAGE_MAX_BYTES`, but at least one.
 * One line more than the page may hold is read, to tell whether another follows.
 */
export async function listTranscriptLines(
  tx: Tx,
  p: Scope & {
    readonly scheduleId: string
    readonly scheduledFor: number
    readonly after: TranscriptPosition
    readonly limit: number
  },
): Promise<StoredLine[]> {
  return sql`
    with page as (
      select first.*, row_number() over in_order as ordinal, count(*) over () as found,
        sum(octet_length(first.entry::text)) over in_order as bytes
      from (
        select lines.token, lines.seq, lines.attempt, lines.at, lines.entry
        from transcripts as lines
        where lines.schedule_id = ${p.scheduleId} and lines.scheduled_for = ${new Date(p.scheduledFor)}
          and lines.tenant_id = ${p.tenantId} and lines.project_id = ${p.projectId}
          and (lines.token, lines.seq) > (${p.after.token}::integer, ${p.after.seq}::integer)
        order by lines.token, lines.seq
        limit ${p.limit + 1}
      ) as first
      window in_order as (order by first.token, first.seq)
    )
    select ${LINE_COLUMNS}
    from page
    where page.ordinal = 1 or (page.ordinal <= ${p.limit} and page.bytes <= ${TRANSCRIPT_PAGE_MAX_BYTES})
    order by page.ordinal`.execute(tx)
}
