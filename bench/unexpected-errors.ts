/**
 * Reports uncaught exceptions and unhandled rejections instead of letting them end the process: a peer's connection that breaks after its
 * database was dropped must not end the run. It must be disposed last.
 */
export class UnexpectedErrors implements Disposable {
  #report: (error: unknown) => void = () => undefined
  readonly #listener = (error: unknown): void => {
    this.#report(error)
  }

  constructor() {
    process.on('uncaughtException', this.#listener)
    process.on('unhandledRejection', this.#listener)
  }

  reportTo(report: (error: unknown) => void): void {
    this.#report = report
  }

  [Symbol.dispose](): void {
    process.off('uncaughtException', this.#listener)
    process.off('unhandledRejection', this.#listener)
  }
}
