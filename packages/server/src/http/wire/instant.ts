/** UTC, to the millisecond. */
export function toInstant(epochMs: number): string {
  return new Date(epochMs).toISOString()
}

export function toInstantOrNull(epochMs: number | null): string | null {
  return epochMs === null ? null : toInstant(epochMs)
}
