/** A schedule whose slots are to be compared. */
export interface DueEntry {
  readonly id: string
  /** The first slot to compare. */
  readonly from: number
}

interface Listed {
  readonly from: number
  readonly compareAt: number
}

/** Entries are kept by tens of seconds, so that the earliest are found without sorting all of them. */
const BUCKET_MS = 10_000

/** Schedules that came due lately or are about to, each with the instant at which it is to be compared. Bounded. */
export class DueList {
  readonly #max: number
  readonly #listed = new Map<string, Listed>()
  readonly #buckets = new Map<number, string[]>()

  constructor(max: number) {
    this.#max = max
  }

  get size(): number {
    return this.#listed.size
  }

  /** When the earliest entry is to be compared, to ten seconds; Infinity if there is none. */
  get earliest(): number {
    return Math.min(Infinity, ...this.#buckets.keys())
  }

  /**
   * One that is listed already is compared when it was to be, from the earlier of both slots on.
   * @returns false if the list is full
   */
  add({ id, from }: DueEntry, compareAt: number): boolean {
    const known = this.#listed.get(id)
    if (known !== undefined) {
      if (from < known.from) this.#listed.set(id, { ...known, from })
      return true
    }
    if (this.#listed.size >= this.#max) return false
    this.#listed.set(id, { from, compareAt })
    const bucket = Math.floor(compareAt / BUCKET_MS) * BUCKET_MS
    const ids = this.#buckets.get(bucket)
    if (ids === undefined) this.#buckets.set(bucket, [id])
    else ids.push(id)
    return true
  }

  /** Takes the earliest entries off that are to be compared by now, at most so many. */
  take(now: number, limit: number): DueEntry[] {
    const taken: DueEntry[] = []
    for (const bucket of [...this.#buckets.keys()].toSorted((a, b) => a - b)) {
      if (bucket + BUCKET_MS > now || taken.length >= limit) break
      const ids = this.#buckets.get(bucket) ?? []
      for (const id of ids.splice(0, limit - taken.length)) {
        const { from } = this.#listed.get(id) ?? { from: now }
        this.#listed.delete(id)
        taken.push({ id, from })
      }
      if (ids.length === 0) this.#buckets.delete(bucket)
    }
    return taken
  }

  clear(): void {
    this.#listed.clear()
    this.#buckets.clear()
  }
}
