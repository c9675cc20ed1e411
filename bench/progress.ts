import { nowMs } from './clock.ts'

/** Shows the parts that run, their rounds and their durations: one line for each part, on standard error. */
export class Progress {
  readonly #write: (text: string) => void
  readonly #startedAt = nowMs()
  /** The last line, if nothing was written after it. */
  #openLine: string | undefined

  constructor(write: (text: string) => void) {
    this.#write = write
  }

  get seconds(): number {
    return (nowMs() - this.#startedAt) / 1000
  }

  /** Begins a line. `end` completes it if nothing was written in between. */
  begin(text: string): void {
    this.#closeLine()
    this.#write(`${this.#stamp()} ${text} … `)
    this.#openLine = text
  }

  /** Ends the line that began with this text, or writes a new line if other text came in between. */
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
