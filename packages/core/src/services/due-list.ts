/** A schedule whose slots are to be compared. */
export interface DueEntry {
  readonly id: string
  /** The first slot to compare. */
  readonly from: number
  /** No slot of the entry came due before this instant. */
  readonly dueAt: number
}

interface Listed extends Omit<DueEntry, 'id'> {
  readonly compareAt: number
}

interface Bucket {
  readonly ids: string[]
  /** Of all entries that were ever in it. */
  earliestDueAt: number
}

/** Entries are kept by tens of seconds, so that the earliest are found without sorting all of them. */
const BUCKET_MS = 10_000

/** Schedules that came due lately or are about to, each with the instant at which it is to be compared. Bounded. */
export class DueList {
  readonly #max: number
  readonly #listed = new Map<string, Listed>()
  readonly #buckets = new Map<number, Bucket>()

  constructor(max: number) {
    this.#max = max
  }

  get size(): number {
    return this.#listed.size
  }

  /** Every slot on the list came due at this instant or later; Infinity if there is none. */
  get earliestDueAt(): number {
    return Math.min(Infinity, ...[...this.#buckets.values()].map(({ earliestDueAt }) => earliestDueAt))
  }

  /**
   * One that is listed already is compared when it was to be, from the earlier of both slots on.
   * @returns false if the list is full
   */
  add({ id, from, dueAt }: DueEntry, compareAt: number): boolean {
    const known = this.#listed.get(id)
    if (known !== undefined) {
      this.#listed.set(id, { ...known, from: Math.min(from, known.from), dueAt: Math.min(dueAt, known.dueAt) })
      const bucket = this.#buckets.get(bucketOf(known.compareAt))
      if (bucket !== undefined) bucket.earliestDueAt = Math.min(bucket.earliestDueAt, dueAt)
      return true
    }
    if (this.#listed.size >= this.#max) return false
    this.#listed.set(id, { from, dueAt, compareAt })
    const bucket = this.#buckets.get(bucketOf(compareAt))
    if (bucket === undefined) this.#buckets.set(bucketOf(compareAt), { ids: [id], earliestDueAt: dueAt })
    else {
      bucket.ids.push(id)
      bucket.earliestDueAt = Math.min(bucket.earliestDueAt, dueAt)
    }
    return true
  }

  /** Takes the earliest entries off that are to be compared by now, at most so many. */
  take(now: number, limit: number): DueEntry[] {
    const taken: DueEntry[] = []
    for (const [at, { ids }] of [...this.#buckets].toSorted(([a], [b]) => a - b)) {
      if (at + BUCKET_MS > now || taken.length >= limit) break
      for (const id of ids.splice(0, limit - taken.length)) {
        const { from, dueAt } = this.#listed.get(id) ?? { from: now, dueAt: now }
        this.#listed.delete(id)
        taken.push({ id, from, dueAt })
      }
      if (ids.length === 0) this.#buckets.delete(at)
    }
    return taken
  }

  clear(): void {
    this.#listed.clear()
    this.#buckets.clear()
  }
}

function bucketOf(compareAt: number): number {
  return Math.floor(compareAt / BUCKET_MS) * BUCKET_MS
}
