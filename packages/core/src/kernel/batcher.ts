/** How a batcher writes. */
export interface BatcherOptions<Item> {
  /** Writes one batch and resolves what waits for its items. It handles its own failures: a rejection ends the writer. */
  readonly write: (batch: readonly Item[]) => Promise<void>
  /** How many items one batch holds at most. */
  readonly batchMax: number
  /** How many batches are written at the same time. @default 1 */
  readonly writers?: number
  /** False if an item cannot be written yet: it stays, and `wake` tries it again. @default every item can */
  readonly claim?: (item: Item) => boolean
  /** What to wait for between two batches, given the size of the last one. @default nothing */
  readonly pause?: (written: number) => Promise<void>
  /** Called when a writer has written everything that waited and no other writer is at work. */
  readonly onIdle?: () => void
  /** Called with the error that ended a writer. No code awaits a writer, so a rejection without a handler would end the process. */
  readonly onRejection: (error: unknown) => void
}

/**
 * The micro-batcher: while one batch is written, the next one collects. A single item is written at once, and items that
 * come in together share a statement.
 */
export class Batcher<Item> {
  readonly #options: BatcherOptions<Item>
  #waiting: Item[] = []
  #writers = 0

  constructor(options: BatcherOptions<Item>) {
    this.#options = options
  }

  get waiting(): number {
    return this.#waiting.length
  }

  add(item: Item): void {
    this.#waiting.push(item)
    this.wake()
  }

  /** Starts a writer if items wait and fewer than `writers` are at work. */
  wake(): void {
    const { writers = 1, onRejection } = this.#options
    if (this.#waiting.length > 0 && this.#writers < writers) this.#writeAll().catch(onRejection)
  }

  async #writeAll(): Promise<void> {
    const { write, pause, onIdle } = this.#options
    this.#writers += 1
    try {
      // Lets the caller's synchronous code finish: items that it adds one after the other are written together.
      await Promise.resolve()
      for (let batch = this.#take(); batch.length > 0; batch = this.#take()) {
        await write(batch)
        await pause?.(batch.length)
      }
    } finally {
      this.#writers -= 1
      if (this.#writers === 0 && this.#waiting.length === 0) onIdle?.()
    }
  }

  #take(): Item[] {
    const { batchMax, claim } = this.#options
    if (claim === undefined) return this.#waiting.splice(0, batchMax)
    const batch: Item[] = []
    const left: Item[] = []
    for (const item of this.#waiting) (batch.length < batchMax && claim(item) ? batch : left).push(item)
    this.#waiting = left
    return batch
  }
}
