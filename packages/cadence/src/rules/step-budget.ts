/**
 * The most steps that one search takes; then it throws `SearchLimitError`. Reading the DST changes of a zone costs most: the
 * budget covers a few decades of them.
 */
export const SEARCH_STEPS = 150_000

/**
 * Thrown if a search does not find a slot within its budget of steps. `parse` rejects a rule that exceeds the budget for
 * its first slots, so this happens only if the slots of a rule become extremely sparse later.
 */
export class SearchLimitError extends Error {
  override readonly name = 'SearchLimitError'
  readonly code = 'search_limit'

  constructor() {
    super('expected a slot within the limit of search steps, got none: use a cadence whose slots are less sparse')
  }
}

/**
 * Bounds a search by steps instead of time, so every machine gives the same answer for the same input. Without a limit, a
 * hostile rule (`FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30`) could search for seconds. Checking one candidate is one step; more
 * expensive work is charged more.
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
