import type { Terminal } from './terminal.ts'

const BAR_WIDTH = 30
/** If standard error is no terminal, one line is written per this many steps. */
const LINE_EVERY = 1000

/** Shows the progress of a long command: a bar on a terminal, occasional lines elsewhere. */
export class Progress {
  readonly #terminal: Terminal
  readonly #what: string
  readonly #total: number
  #done = 0
  #drawn = ''

  constructor(terminal: Terminal, what: string, total: number) {
    this.#terminal = terminal
    this.#what = what
    this.#total = total
  }

  step(count = 1): void {
    const before = this.#done
    this.#done += count
    if (this.#terminal.canRedraw) this.#draw()
    else if (Math.floor(before / LINE_EVERY) < Math.floor(this.#done / LINE_EVERY)) {
      this.#terminal.writeError(`${this.#what}: ${this.#done} of ${this.#total}\n`)
    }
  }

  /** Removes the bar. */
  end(): void {
    if (this.#drawn !== '') this.#terminal.writeError(`\r${' '.repeat(this.#drawn.length)}\r`)
    this.#drawn = ''
  }

  #draw(): void {
    const filled = Math.round((this.#done / this.#total) * BAR_WIDTH)
    const bar = '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled)
    const text = `${this.#what} ${bar} ${this.#done}/${this.#total}`
    // Writing the same text again would make the terminal flicker.
    if (text === this.#drawn) return
    this.#drawn = text
    this.#terminal.writeError(`\r${text}`)
  }
}
