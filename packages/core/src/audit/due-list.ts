/** A schedule whose slots the recent audit will compare. */
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
  /** The earliest `dueAt` of all entries that were ever added to the bucket, removed ones included. */
  earliestDueAt: number
}

/** Entries are grouped by ten seconds, so that the earliest are found without sorting all of them. */
const BUCKET_MS = 10_000

/** Schedules that came due recently or will soon, each with the instant at which to compare it. At most `max` of them. */
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

  /** Every slot on the list came due at this instant or later; Infinity if the list is empty. */
  get earliestDueAt(): number {
    return Math.min(Infinity, ...[...this.#buckets.values()].map(({ earliestDueAt }) => earliestDueAt))
  }

  /**
   * Adds a schedule. One that is listed already keeps its time of comparison, and is compared from the earlier of both slots on.
   * @returns false if the list already holds its maximum
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

  /** Removes and returns the earliest entries whose time of comparison has come, at most `limit`. */
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

/** The due times that the list missed; a full audit compares those slots. */
export class UnlistedSpan {
  #from = Infinity
  #until = -Infinity

  /** Slots that came due between these instants may not be listed. `from` is -Infinity if the start is not known. */
  add(from: number, until: number): void {
    if (until < from) return
    this.#from = Math.min(this.#from, from)
    this.#until = Math.max(this.#until, until)
  }

  /**
   * The start of the span; Infinity if every slot was listed.
   * @param coveredUntil a full audit has compared the slots that came due up to this instant
   */
  since(coveredUntil = -Infinity): number {
    return coveredUntil >= this.#until ? Infinity : Math.max(this.#from, coveredUntil)
  }

  /** Notes that a full audit has compared the slots that came due up to this instant. The rest of the span stays. */
  cover(coveredUntil: number): void {
    this.#from = this.since(coveredUntil)
    if (this.#from === Infinity) this.#until = -Infinity
  }

  clear(): void {
    this.#from = Infinity
    this.#until = -Infinity
  }
}
