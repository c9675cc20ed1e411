import { nowMs } from './clock.ts'

/** What runs, on which round, and for how long: one line for each part, on standard error. */
export class Progress {
  readonly #write: (text: string) => void
  readonly #startedAt = nowMs()
  /** Of the line that nothing has been written behind yet. */
  #openLine: string | undefined

  constructor(write: (text: string) => void) {
    this.#write = write
  }

  get seconds(): number {
    return (nowMs() - this.#startedAt) / 1000
  }

  /** Begins a line that `end` completes, if nothing came between. */
  begin(text: string): void {
    this.#closeLine()
    this.#write(`${this.#stamp()} ${text} … `)
    this.#openLine = text
  }

  /** What began with this text, or with more behind it, is over. */
  end(text: string, outcome: string): void {
    if (this.#openLine?.startsWith(text) === true) {
      this.#openLine = undefined
      this.#write(`${outcome}\n`)
      return
    }
    this.note(`${text}: ${outcome}`)
  }

  note(text: string): void {
    this.#closeLine()
    this.#write(`${this.#stamp()}   ${text}\n`)
  }

  #closeLine(): void {
    if (this.#openLine !== undefined) this.#write('\n')
    this.#openLine = undefined
  }

  #stamp(): string {
    return `${this.seconds.toFixed(0).padStart(5)} s`
  }
}
