/**
 * Errors that nobody awaits: a peer's connection that breaks after its database was dropped must not end the run. While
 * this is in use they are reported instead of ending the process; it is the last thing to go.
 */
export class StrayErrors implements Disposable {
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
