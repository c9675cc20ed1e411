import { foundText, isRunOver, TRANSCRIPT_PAGE_SIZE, wholeNumber, expected, type RunState } from '@carillon/api'
import { z } from 'zod'

import type { Tx } from '../db/database.ts'
import { checkedObject } from '../kernel/checked-object.ts'
import { invalidInput } from '../kernel/errors.ts'
import type { Scope } from '../kernel/scope.ts'
import { findRunOf } from './runs.ts'
import { listTranscriptLines, type StoredLine, type TranscriptPosition } from './store/transcripts.ts'

/** What a run recorded, or what Carillon says about its transcript (`TRANSCRIPT_OWN_KINDS`). */
export interface TranscriptLine {
  /** Where the line stands. A later line of the run has a greater position: see `isAfterLine`. */
  readonly id: string
  readonly attempt: number
  /** Epoch milliseconds, by Postgres' clock. */
  readonly at: number
  readonly entry: StoredLine['entry']
}

export interface TranscriptPage {
  readonly lines: readonly TranscriptLine[]
  /** True if more lines follow these already. */
  readonly isMore: boolean
  /** The state of the run before the lines were read. If the run was over by then, no line is added after this page. */
  readonly state: RunState
}

const FIRST: TranscriptPosition = { token: 0, seq: 0 }
const LINE_ID = /^(\d{1,10})-(\d{1,10})$/
const INTEGER_MAX = 2 ** 31 - 1

const PAGE_OPTIONS = z.strictObject(
  {
    /** The id of a line: the page begins after it. @default the page begins with the first line */
    after: z.string(expected('the id of a line')).optional(),
    /** At most `TRANSCRIPT_PAGE_SIZE.max`. @default `TRANSCRIPT_PAGE_SIZE.default` */
    limit: wholeNumber(TRANSCRIPT_PAGE_SIZE).optional(),
  },
  expected('an object'),
)

export type TranscriptPageOptions = z.input<typeof PAGE_OPTIONS>

/** Checked before a transaction is opened. */
export function checkedTranscriptPage(options: TranscriptPageOptions): { after: TranscriptPosition; limit: number } {
  const { after, limit = TRANSCRIPT_PAGE_SIZE.default } = checkedObject(options, PAGE_OPTIONS)
  return { after: after === undefined ? FIRST : positionOf(after), limit }
}

/**
 * A page of the transcript of a run, in the order in which it was recorded, across attempts.
 * @throws CarillonError `run_not_found`, also for a run of another project (I9)
 */
export async function readTranscript(
  tx: Tx,
  p: Scope & { readonly runId: string; readonly after: TranscriptPosition; readonly limit: number },
): Promise<TranscriptPage> {
  // In this order, with a newer snapshot for the lines: a line is written only while its run is locked and not over.
  const { state, scheduleId, scheduledFor } = await findRunOf(tx, { ...p, id: p.runId })
  const stored = await listTranscriptLines(tx, { ...p, scheduleId, scheduledFor })
  const lines = stored.map(({ attempt, at, entry, ...position }) => ({ id: lineId(position), attempt, at, entry }))
  return { lines, isMore: stored.at(-1)?.isLast === false, state }
}

/** True if no line will ever follow this page. */
export function isTranscriptComplete({ isMore, state }: TranscriptPage): boolean {
  return !isMore && isRunOver({ state })
}

/** Compares two ids of lines of one run. @param other undefined: the position before the first line */
export function isAfterLine(id: string, other: string | undefined): boolean {
  const [a, b] = [positionOf(id), other === undefined ? FIRST : positionOf(other)]
  return a.token > b.token || (a.token === b.token && a.seq > b.seq)
}

function lineId({ token, seq }: TranscriptPosition): string {
  return `${token}-${seq}`
}

/** @throws CarillonError `invalid_input` for a text that is not the id of a line */
function positionOf(id: string): TranscriptPosition {
  const [, token, seq] = (LINE_ID.exec(id) ?? []).map(Number)
  if (token !== undefined && seq !== undefined && token <= INTEGER_MAX && seq <= INTEGER_MAX) return { token, seq }
  throw invalidInput([{ path: 'after', message: `expected the id of a line of this transcript, got ${foundText(id)}` }])
}
