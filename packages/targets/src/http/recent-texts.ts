/**
 * What was made of texts that come again and again. Holds the latest `count` at least and twice as many at most: when so many
 * are there, those that were not asked for since the last time are forgotten.
 */
export class RecentTexts<Value> {
  readonly #count: number
  readonly #textMaxLength: number
  #recent = new Map<string, Value>()
  #older = new Map<string, Value>()

  /** @param textMaxLength what is longer is never held: so much memory it takes at most */
  constructor({ count, textMaxLength }: { readonly count: number; readonly textMaxLength: number }) {
    this.#count = count
    this.#textMaxLength = textMaxLength
  }

  get(text: string): Value | undefined {
    const recent = this.#recent.get(text)
    if (recent !== undefined) return recent
    const older = this.#older.get(text)
    if (older !== undefined) this.set(text, older)
    return older
  }

  set(text: string, value: Value): void {
    if (text.length > this.#textMaxLength) return
    if (this.#recent.size >= this.#count) {
      this.#older = this.#recent
      this.#recent = new Map()
    }
    this.#recent.set(text, value)
  }
}
