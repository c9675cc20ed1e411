import { z } from 'zod'

import { newFullAudit, type FullAuditState } from './full-audit.ts'

const COUNTS = z.object({ schedules: z.int(), slots: z.int(), unreadable: z.int(), truncated: z.int() })

const CURSOR = z.object({
  /** Runs that ended up to this instant were written by an older version. */
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

/** A slice of 50 ms is followed by 5 s of rest: the auditor uses one hundredth of a core. */
const SHARE = 0.01
/** A slice that takes longer waits for a lock or a slow Postgres, not for a core. It must not cost hours of rest. */
const CHARGED_MAX_MS = 1000
/** Between two slices. Slices that rest for the auditor's share still read the agenda this often. */
const REST_MIN_MS = 1000
const REST_IDLE_MS = 15_000

/** A cursor that cannot be read, because another version stored it, is reset. Only its `legacyUntil` is kept, if that can be read. */
export function readAuditCursor(stored: unknown): AuditCursor {
  const known = CURSOR.safeParse(stored ?? {})
  if (known.success) return known.data
  const legacy = CURSOR.pick({ legacyUntil: true }).safeParse(stored)
  return CURSOR.parse(legacy.success ? legacy.data : {})
}

/** The full audit to work on: the one in progress, or one that starts now; null if none is due. A requested one starts at once. */
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

/** How long until the next slice. While a request is open there is no rest. */
export function restMsAfter(p: {
  readonly isRequested: boolean
  readonly isAnswered: boolean
  readonly hasMore: boolean
  readonly leftMs: number
}): number {
  if (p.isRequested) return p.isAnswered ? REST_MIN_MS : 0
  return p.hasMore ? Math.min(Math.max(p.leftMs, REST_MIN_MS), REST_IDLE_MS) : REST_IDLE_MS
}
