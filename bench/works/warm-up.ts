import type { Lateness } from '../measure.ts'

/** Not counted, of any subject: the first statements on a connection are planned, and code is read for the first time. */
export const WARM_UP = 20

interface Sparse {
  readonly slots: number
  readonly spacingMs: number
}

/** Lateness of as many slots as were asked for, after those that are not counted. */
export async function warmLateness(work: Sparse, measure: (work: Sparse) => Promise<Lateness>): Promise<Lateness> {
  const late = await measure({ slots: work.slots + WARM_UP, spacingMs: work.spacingMs })
  return late.slice(WARM_UP)
}
