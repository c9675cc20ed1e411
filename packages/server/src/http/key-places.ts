import { ProblemError } from './problems/problem-error.ts'

interface KeyPlacesOptions {
  readonly max: number
  /** What takes a place, as refusals call it. */
  readonly noun: string
  readonly retryAfterSeconds: number
}

/** How many things of one kind each key may have going on at a time, in this process. */
export class KeyPlaces {
  readonly #options: KeyPlacesOptions
  readonly #taken = new Map<string, number>()

  constructor(options: KeyPlacesOptions) {
    this.#options = options
  }

  /** @throws ProblemError if all are taken; who takes one gives it back */
  take(keyId: string): void {
    const { max, noun, retryAfterSeconds } = this.#options
    const taken = this.#taken.get(keyId) ?? 0
    if (taken >= max) {
      const detail = `expected at most ${max} ${noun} of one key at a time, got another: wait until one is over`
      throw new ProblemError('rate_limited', detail, { headers: { 'retry-after': String(retryAfterSeconds) } })
    }
    this.#taken.set(keyId, taken + 1)
  }

  giveBack(keyId: string): void {
    const taken = (this.#taken.get(keyId) ?? 0) - 1
    if (taken > 0) this.#taken.set(keyId, taken)
    else this.#taken.delete(keyId)
  }
}
