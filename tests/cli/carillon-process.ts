import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export const BINARY = fileURLToPath(new URL('../../packages/cli/bin/carillon.js', import.meta.url))

export interface Ended {
  readonly stdout: string
  readonly stderr: string
  readonly exitCode: number | null
}

export interface ProcessOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd: string
  /** Written to standard input, which is then closed. */
  readonly input?: string
  /** @default the Node that runs the tests */
  readonly node?: string
}

/** The command line as a child process. It inherits the environment of the tests except for the settings of Carillon. */
export class CarillonProcess {
  readonly child: ChildProcessWithoutNullStreams
  readonly ended: Promise<Ended>
  #stdout = ''
  #stderr = ''
  #grown = Promise.withResolvers<void>()

  constructor(args: readonly string[], { env = {}, cwd, input = '', node = process.execPath }: ProcessOptions) {
    const inherited = Object.entries(process.env).filter(([name]) => !/^(CARILLON_|DATABASE_URL$|NO_COLOR$)/.test(name))
    this.child = spawn(node, [BINARY, ...args], { cwd, env: { ...Object.fromEntries(inherited), ...env } })
    this.child.stdout.setEncoding('utf8').on('data', (text: string) => this.#grow(() => (this.#stdout += text)))
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => this.#grow(() => (this.#stderr += text)))
    // A program may end without reading its input.
    this.child.stdin.on('error', () => undefined)
    this.child.stdin.end(input)
    this.ended = this.#end()
  }

  /** Waits until the output matches, and returns the output. */
  async shown(pattern: RegExp, of: 'stdout' | 'stderr' = 'stdout'): Promise<string> {
    for (;;) {
      const text = of === 'stdout' ? this.#stdout : this.#stderr
      if (pattern.test(text)) return text
      const { exitCode, signalCode } = this.child
      if (exitCode !== null || signalCode !== null) {
        throw new Error(`ended without ${String(pattern)}: ${this.#stdout}${this.#stderr}`)
      }
      await this.#grown.promise
    }
  }

  /** Sends a signal and waits until the process has exited. */
  async stop(signal: NodeJS.Signals = 'SIGINT'): Promise<Ended> {
    this.child.kill(signal)
    return this.ended
  }

  #grow(add: () => void): void {
    add()
    this.#grown.resolve()
    this.#grown = Promise.withResolvers()
  }

  async #end(): Promise<Ended> {
    const [exitCode] = (await once(this.child, 'close')) as [number | null]
    this.#grow(() => undefined)
    return { stdout: this.#stdout, stderr: this.#stderr, exitCode }
  }
}
