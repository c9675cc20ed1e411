/**
 * Thrown when a slot cannot be found within a fixed number of steps. `parse` refuses rules that need so many for their
 * first slot, so only a rule that thins out enormously later can bring it about.
 */
export class SearchLimitError extends Error {
  override readonly name = 'SearchLimitError'
  readonly code = 'search_limit'

  constructor() {
    super('the next slot was not found within the limit of steps; the cadence is too sparse to follow')
  }
}

/**
 * Bounds a search by steps, not by time, so that the same input gets the same answer on every machine.
 * Hostile rules (`FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30`) can make a search walk for seconds otherwise.
 * A step is a look at one candidate; what costs more is charged more.
 */
export class StepBudget {
  #left: number

  constructor(steps: number) {
    this.#left = steps
  }

  spend(steps = 1): void {
    this.#left -= steps
    if (this.#left < 0) throw new SearchLimitError()
  }
}
