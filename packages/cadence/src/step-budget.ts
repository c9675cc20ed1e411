/** Thrown inside a search and caught where searches start: it never leaves this package. */
export class StepsSpentError extends Error {
  override readonly name = 'StepsSpentError'
}

/**
 * Bounds a search by steps, not by time, so that the same input gets the same answer on every machine.
 * Hostile rules (`FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30`) can make a search walk for seconds otherwise.
 * A step is worth about 20 ns.
 */
export class StepBudget {
  #left: number

  constructor(steps: number) {
    this.#left = steps
  }

  spend(steps = 1): void {
    this.#left -= steps
    if (this.#left < 0) throw new StepsSpentError()
  }
}
