import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'

import { REPOSITORY } from '../house/run-tool.ts'

interface StartOptions {
  /** Added to the environment of the tests, unless `isWholeEnv` is set. */
  readonly env: NodeJS.ProcessEnv
  /** The process gets `env` alone. @default false */
  readonly isWholeEnv?: boolean
  /** @default the root of the repository */
  readonly cwd?: string
  /** @default the user that runs the tests */
  readonly user?: { readonly uid: number; readonly gid: number }
  /** The command in the README. @default 'npm start' */
  readonly command?: string
}

/** `npm start` in a process group of its own, as a terminal would start it. */
export class NpmStart {
  readonly child: ChildProcess
  readonly exited: Promise<unknown>
  /** Its output so far, errors included. */
  readonly lines: string[] = []
  readonly #output: readonly ReturnType<typeof createInterface>[]

  constructor({ env, isWholeEnv = false, cwd = REPOSITORY, user, command = 'npm start' }: StartOptions) {
    // Without `exec` a signal to the child would reach the shell instead of npm.
    const child = spawn(`exec ${command}`, {
      ...user,
      shell: true,
      cwd,
      env: isWholeEnv ? env : { ...process.env, ...env },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.child = child
    this.exited = once(child, 'close')
    this.#output = [child.stdout, child.stderr].map((stream) =>
      createInterface(stream).on('line', (line) => this.lines.push(line)),
    )
  }

  /** Resolves once a line contains the text. If the process exits before, it throws the output so far. */
  async said(text: string): Promise<string> {
    for (;;) {
      const line = this.lines.find((said) => said.includes(text))
      if (line !== undefined) return line
      const next = this.#output.map((output) => once(output, 'line').then(() => false))
      if (await Promise.race([...next, this.exited.then(() => true)])) {
        throw new Error(`ended without "${text}":\n${this.lines.join('\n')}`)
      }
    }
  }

  /** Sends a signal to npm alone, or to the whole group. */
  signal(signal: NodeJS.Signals, to: 'npm' | 'group'): void {
    const { pid = 0 } = this.child
    process.kill(to === 'npm' ? pid : -pid, signal)
  }

  /** Kills the whole group, unless the process has exited. For the end of a test, which may have failed at any point. */
  async kill(): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.signal('SIGKILL', 'group')
    await this.exited
  }
}

/** The processes with `text` in their environment: npm, the service, Postgres and watchdogs. Linux only. */
export function processesWith(text: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && readOr(`/proc/${name}/environ`).includes(text))
    .map(Number)
}

export function commandOf(pid: number): string {
  return readOr(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')
}

/** The process has exited in the meantime, or belongs to another user. */
function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

export async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
