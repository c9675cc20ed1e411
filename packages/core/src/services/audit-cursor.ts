import { z } from 'zod'

const COUNTS = z.object({ schedules: z.int(), slots: z.int(), unreadable: z.int(), truncated: z.int() })

const CURSOR = z.object({
  /** What ended up to this instant was written by an older version. */
  legacyUntil: z.number().nullable().default(null),
  /** The last change of a schedule that was noted. */
  changeId: z.string().nullable().default(null),
  /** When the next full audit starts, if none is under way. */
  nextFullAt: z.number().default(0),
  /** Until then it only reads the agenda: earlier slices have used its share of the time. */
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

/** Where the auditor goes on, as its turn stores it. */
export type AuditCursor = z.output<typeof CURSOR>

/** A cursor that another version left is begun anew, but for what older versions left in the ledger. */
export function cursorOf(stored: unknown): AuditCursor {
  const known = CURSOR.safeParse(stored ?? {})
  if (known.success) return known.data
  const legacy = CURSOR.pick({ legacyUntil: true }).safeParse(stored)
  return CURSOR.parse(legacy.success ? legacy.data : {})
}
