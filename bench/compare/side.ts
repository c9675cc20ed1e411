import { Child } from '../works/child.ts'
import type { SideAnswer, SideArgument, SideName, SideOrder } from './side-message.ts'

/** The process of one side. It runs one order at a time, and lives as long as the comparison, so its code stays compiled. */
export class Side implements AsyncDisposable {
  readonly name: SideName
  readonly #child: Child<SideAnswer>
  #onAnswer: (answer: SideAnswer) => void = () => undefined

  private constructor(name: SideName, child: Child<SideAnswer>) {
    this.name = name
    this.#child = child
    child.onMessage((answer) => {
      this.#onAnswer(answer)
    })
  }

  static async start(argument: SideArgument): Promise<Side> {
    return new Side(argument.side, await Child.start<SideAnswer>('side-process.ts', argument))
  }

  /** Rejects if the process ends, or if the signal aborts. */
  async measure(order: SideOrder, signal: AbortSignal): Promise<SideAnswer> {
    signal.throwIfAborted()
    const { promise: answered, resolve } = Promise.withResolvers<SideAnswer>()
    const { promise: aborted, reject } = Promise.withResolvers<never>()
    const abort = (): void => {
      reject(signal.reason)
    }
    this.#onAnswer = resolve
    signal.addEventListener('abort', abort, { once: true })
    try {
      this.#child.send(order)
      return await Promise.race([answered, aborted, this.#child.failed])
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#child[Symbol.asyncDispose]()
  }
}
