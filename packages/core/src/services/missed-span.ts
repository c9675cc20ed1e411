/** The time in which slots may have come due without being compared; a full audit covers it. */
export class MissedSpan {
  #from = Infinity
  #until = -Infinity

  /** Slots that came due from one instant to the other may not be compared. -Infinity: it is not known since when. */
  add(from: number, until: number): void {
    if (until < from) return
    this.#from = Math.min(this.#from, from)
    this.#until = Math.max(this.#until, until)
  }

  /**
   * From when on slots may have been missed; Infinity if none were.
   * @param coveredUntil a full audit compared what came due up to this instant
   */
  since(coveredUntil = -Infinity): number {
    return coveredUntil >= this.#until ? Infinity : Math.max(this.#from, coveredUntil)
  }

  /** A full audit compared what came due up to this instant. What was missed later stays missed. */
  cover(coveredUntil: number): void {
    this.#from = this.since(coveredUntil)
    if (this.#from === Infinity) this.#until = -Infinity
  }

  clear(): void {
    this.#from = Infinity
    this.#until = -Infinity
  }
}
