import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

import { nowMs, within } from '../clock.ts'

const START_MS = 30_000
const STOP_MS = 30_000

/** A child process of the bench. Its first message reports that it is ready. It ends when its channel to this process closes. */
export class Child<Message> implements AsyncDisposable {
  readonly pid: number
  /** Resolves with its first message. */
  readonly ready: Promise<Message>
  /** Rejects if the process ends before `stop`. */
  readonly failed: Promise<never>
  readonly #process: ChildProcess

  private constructor(file: string, argument: unknown, env: NodeJS.ProcessEnv) {
    this.#process = fork(join(import.meta.dirname, file), [JSON.stringify(argument)], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: { ...process.env, ...env },
    })
    this.pid = this.#process.pid ?? 0
    const first = Promise.withResolvers<Message>()
    const ended = Promise.withResolvers<never>()
    // The process may end after the last await.
    ended.promise.catch(() => undefined)
    this.#process.once('message', (message) => {
      first.resolve(message as Message)
    })
    this.#process.once('exit', (code) => {
      ended.reject(new Error(`expected ${file} to go on, got its end with code ${code}`))
    })
    this.#process.once('error', ended.reject)
    this.ready = Promise.race([first.promise, ended.promise])
    this.failed = ended.promise
  }

  /** @param env the variables that it gets besides those of this process */
  static async start<Message>(file: string, argument: unknown, env: NodeJS.ProcessEnv = {}): Promise<Child<Message>> {
    const child = new Child<Message>(file, argument, env)
    try {
      await within(child.ready, nowMs() + START_MS)
      return child
    } catch (error) {
      child.#process.kill('SIGKILL')
      throw error
    }
  }

  onMessage(listener: (message: Message) => void): void {
    this.#process.on('message', (message) => {
      listener(message as Message)
    })
  }

  send(message: object): void {
    this.#process.send(message)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const exit = once(this.#process, 'exit')
    if (this.#process.connected) this.#process.disconnect()
    try {
      await within(exit, nowMs() + STOP_MS)
    } catch {
      this.#process.kill('SIGKILL')
    }
  }
}
