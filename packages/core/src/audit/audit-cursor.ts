import { z } from 'zod'

import { newFullAudit, type FullAuditState } from './full-audit.ts'

const COUNTS = z.object({ schedules: z.int(), slots: z.int(), unreadable: z.int(), truncated: z.int() })

const CURSOR = z.object({
  /** Runs that ended up to this instant were written by an older version of Carillon; null: none were. */
  legacyUntil: z.number().nullable().default(null),
  /** The last row of `schedule_changes` that was read. */
  changeId: z.string().nullable().default(null),
  /** When the next full audit starts, if none is in progress. */
  nextFullAt: z.number().default(0),
  /** Until then slices only read the agenda: earlier slices have used the auditor's share of the time. */
  restUntil: z.number().default(0),
  full: z
    .object({
      startedAt: z.number(),
      requestedAt: z.number().nullable(),
      next: z.object({
        step: z.enum(['ledger', 'open_runs']),
        at: z.object({ scheduleId: z.string(), slot: z.number().nullable() }),
        sums: z.object({ runs: z.int(), failures: z.int(), open: z.int().default(0) }),
      }),
      counts: COUNTS,
      findings: z.int(),
      repaired: z.int(),
    })
    .nullable()
    .default(null),
})

/** Where and when the auditor continues, as its row in `service_turns` stores it. */
export type AuditCursor = z.output<typeof CURSOR>

/** The share of the time that the auditor works, one hundredth of a core: a slice of 50 ms is followed by 5 s of rest. */
const SHARE = 0.01
/**
 * The most time of one slice that counts towards the share. A slice that takes longer waits for a lock or a slow Postgres, not for a core,
 * and must not cost hours of rest.
 */
const CHARGED_MAX_MS = 1000
/** The shortest time between two slices, unless a request is open. */
const REST_MIN_MS = 1000
/** The longest time between two slices. An auditor that has used its share of the time still reads the agenda this often. */
const REST_IDLE_MS = 15_000

/** A cursor that cannot be read, because another version stored it, is reset. Only its `legacyUntil` is kept, if that can be read. */
export function readAuditCursor(stored: unknown): AuditCursor {
  const known = CURSOR.safeParse(stored ?? {})
  if (known.success) return known.data
  const legacy = CURSOR.pick({ legacyUntil: true }).safeParse(stored)
  return CURSOR.parse(legacy.success ? legacy.data : {})
}

/**
 * The full audit to work on: the one in progress, or one that starts now; null if none is due. A request starts one at once, and replaces
 * an audit in progress that was not requested.
 */
export function currentFullAudit(
  { full, nextFullAt }: Pick<AuditCursor, 'full' | 'nextFullAt'>,
  now: number,
  requestedAt: number | null,
): FullAuditState | null {
  if (full === null) return now >= nextFullAt || requestedAt !== null ? newFullAudit(now, requestedAt) : null
  return full.requestedAt === null && requestedAt !== null ? newFullAudit(now, requestedAt) : full
}

/** The instant until which the auditor rests, so that all slices together take no more than their share of the time. */
export function restUntilAfter({ restUntil }: AuditCursor, now: number, tookMs: number): number {
  return Math.max(now, restUntil) + Math.min(tookMs, CHARGED_MAX_MS) * (1 / SHARE - 1)
}

/**
 * Time until the next slice, in milliseconds. While a request is open there is no rest.
 * @param p.leftMs time until the auditor has rested for its share
 */
export function restMsAfter(p: {
  readonly isRequested: boolean
  readonly isAnswered: boolean
  readonly hasMore: boolean
  readonly leftMs: number
}): number {
  if (p.isRequested) return p.isAnswered ? REST_MIN_MS : 0
  return p.hasMore ? Math.min(Math.max(p.leftMs, REST_MIN_MS), REST_IDLE_MS) : REST_IDLE_MS
}
