/** The slots of a schedule of the workload: one every `everyMs`, counted from an instant. */
export interface Grid {
  readonly everyMs: number
  readonly anchorMs: number
}

/**
 * The workload writes a schedule's slots into its name. So the verdict can compute them from the request instead of the stored schedule,
 * even if the answer to the create was lost.
 */
export function nameOf(kind: string, { everyMs, anchorMs }: Grid): string {
  return `${kind}, every ${everyMs} ms from ${anchorMs}`
}

export function gridOf(name: string): Grid {
  const [, everyMs, anchorMs] = /, every (\d+) ms from (\d+)$/.exec(name) ?? []
  if (everyMs === undefined || anchorMs === undefined) throw new Error(`not a schedule of the workload: ${name}`)
  return { everyMs: Number(everyMs), anchorMs: Number(anchorMs) }
}

/** The slots in [from, to], ascending. */
export function slotsBetween({ everyMs, anchorMs }: Grid, from: number, to: number): number[] {
  const slots: number[] = []
  const first = anchorMs + Math.ceil((from - anchorMs) / everyMs) * everyMs
  for (let slot = Math.max(first, anchorMs); slot <= to; slot += everyMs) slots.push(slot)
  return slots
}
