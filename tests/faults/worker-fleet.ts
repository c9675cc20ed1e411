import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import type { SeededRandom } from './seeded-random.ts'

/** A worker process that exited by itself: this rig neither killed it nor asked it to stop. */
export interface SelfDeath {
  readonly name: string
  readonly at: number
  readonly exit: string
  /** The end of its output to stderr. */
  readonly said: string
}

interface Member {
  readonly name: string
  readonly child: ChildProcess
  isStarted: boolean
  /** The last order of this rig to the worker. */
  told: 'nothing' | 'killed' | 'to stop'
  said: string
}

const RESPAWN_PAUSE_MS = 250
const SAID_MAX = 8000
const FRAMES_MAX = 2
/** A worker may take 25 s to drain. */
const STOP_LIMIT_MS = 30_000

/** A set of worker processes. A worker that exits is started again, whatever the reason, until the fleet is stopped. */
export class WorkerFleet implements AsyncDisposable {
  readonly deaths: SelfDeath[] = []
  /** How often a worker could not start because a fault hit it during its start. */
  startFailures = 0
  killed = 0
  readonly #databaseUrl: string
  readonly #random: SeededRandom
  /** Halves the CPU time that a worker takes to start, so that killed workers are soon replaced. */
  readonly #compileCache = mkdtempSync(join(tmpdir(), 'carillon-faults-code-'))
  readonly #members = new Set<Member>()
  readonly #respawns = new Set<NodeJS.Timeout>()
  #spawned = 0
  #isStopping = false

  constructor({ databaseUrl, random }: { readonly databaseUrl: string; readonly random: SeededRandom }) {
    this.#databaseUrl = databaseUrl
    this.#random = random
  }

  /** Resolves once all workers have started. */
  async start(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.#spawn()))
  }

  get started(): number {
    return [...this.#members].filter(({ isStarted }) => isStarted).length
  }

  /** Kills one worker as a power cut would. False if none has started. */
  kill(): boolean {
    const member = this.#pick()
    if (member === undefined) return false
    member.told = 'killed'
    this.killed += 1
    return member.child.kill('SIGKILL')
  }

  /** Asks one worker to drain and stop. Another one replaces it. */
  retire(): void {
    const member = this.#pick()
    if (member !== undefined) tellToStop(member)
  }

  /** Asks all workers to drain and stop, and waits. A worker that takes too long is killed and counts as a death. */
  async stop(): Promise<void> {
    this.#isStopping = true
    for (const timer of this.#respawns) clearTimeout(timer)
    await Promise.all([...this.#members].map((member) => this.#stopOne(member)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isStopping = true
    for (const timer of this.#respawns) clearTimeout(timer)
    const left = [...this.#members].filter(({ child }) => isRunning(child))
    await Promise.all(
      left.map(async (member) => {
        member.told = 'killed'
        const exited = once(member.child, 'exit')
        member.child.kill('SIGKILL')
        await exited
      }),
    )
    rmSync(this.#compileCache, { recursive: true, force: true })
  }

  #pick(): Member | undefined {
    return this.#random.pick([...this.#members].filter(({ isStarted, told }) => isStarted && told === 'nothing'))
  }

  async #spawn(): Promise<void> {
    this.#spawned += 1
    const name = `worker ${this.#spawned}`
    const script = fileURLToPath(new URL('./worker-process.ts', import.meta.url))
    const env = {
      ...process.env,
      DATABASE_URL: this.#databaseUrl,
      WORKER_NAME: name,
      NODE_COMPILE_CACHE: this.#compileCache,
    }
    const child = spawn(process.execPath, [script], { env, stdio: ['pipe', 'pipe', 'pipe'] })
    const member: Member = { name, child, isStarted: false, told: 'nothing', said: '' }
    this.#members.add(member)
    child.stderr.setEncoding('utf8').on('data', (text: string) => (member.said = (member.said + text).slice(-SAID_MAX)))
    child.once('close', (code, signal) => this.#ended(member, code, signal))
    const started = new Promise<void>((resolve) => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        member.isStarted = line === 'started'
        if (member.isStarted) resolve()
        else this.startFailures += 1
      })
    })
    await Promise.race([started, once(child, 'close')])
  }

  #ended(member: Member, code: number | null, signal: NodeJS.Signals | null): void {
    this.#members.delete(member)
    const { name, told, said } = member
    const isExpected = (told === 'killed' && signal === 'SIGKILL') || (told === 'to stop' && code === 0)
    if (!isExpected) {
      this.deaths.push({ name, at: Date.now(), exit: signal ?? `exit code ${code}`, said: briefly(said) })
    }
    if (this.#isStopping) return
    const timer = setTimeout(() => {
      this.#respawns.delete(timer)
      void this.#spawn()
    }, RESPAWN_PAUSE_MS)
    this.#respawns.add(timer)
  }

  async #stopOne(member: Member): Promise<void> {
    const { child } = member
    if (!isRunning(child)) return
    const closed = once(child, 'close')
    // A worker that has not started yet cannot drain.
    if (member.isStarted) tellToStop(member)
    else {
      member.told = 'killed'
      child.kill('SIGKILL')
    }
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
    await closed
    clearTimeout(timer)
  }
}

function tellToStop(member: Member): void {
  member.told = 'to stop'
  member.child.kill('SIGTERM')
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null
}

/** The error of a stack trace, and its first frames outside of Node and the driver. */
function briefly(text: string): string {
  const lines = text.split('\n').map((line) => line.trim())
  const error =
    lines.find((line) => /^(?:\w*error\b.*?: |could not start: )/i.test(line)) ?? lines.find((line) => line !== '')
  const frames = lines.filter((line) => line.startsWith('at ') && !/node:internal|node_modules\/pg/.test(line))
  return [error ?? 'it said nothing', ...frames.slice(0, FRAMES_MAX)].join(' ')
}
