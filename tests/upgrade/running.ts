import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { isRunOver, type RunState } from '@carillon/api'
import { onTestFinished, vi } from 'vitest'

import { USER_ENV } from '../packages/user-env.ts'
import { findFreePort, NpmStart } from '../service/npm-start.ts'

/** A worker that was killed leaves a run whose lease must end first. */
const SETTLED_WITHIN_MS = 90_000

/** A line of the ledger. */
interface RunLine {
  readonly scheduledFor: string
  readonly state: RunState
  readonly reason: string | null
}

interface RunOptions {
  /** The command `carillon` of a version. */
  readonly command: string
  readonly args: string
  /** The folder that it runs in, where the embedded Postgres and the admin key are. */
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
  /** What it prints once it runs. */
  readonly ready: string
}

/** A Carillon of some version that runs in processes of its own, asked over HTTP as every client asks it. */
export class RunningVersion {
  readonly url: string
  readonly env: NodeJS.ProcessEnv
  readonly #process: NpmStart
  readonly #key: string

  constructor(process: NpmStart, env: NodeJS.ProcessEnv, key: string) {
    this.#process = process
    this.env = env
    this.url = env['CARILLON_URL'] ?? ''
    this.#key = key
  }

  /** It is stopped when the test ends, if it was not before. */
  static async start({ command, args, cwd, env = {}, ready }: RunOptions): Promise<RunningVersion> {
    const port = String(await findFreePort())
    const all = { ...USER_ENV, CARILLON_PORT: port, CARILLON_URL: `http://127.0.0.1:${port}`, ...env }
    const process = new NpmStart({ cwd, env: all, isWholeEnv: true, command: `${command} ${args}` })
    onTestFinished(() => process.kill())
    await process.said(ready)
    const key = env['CARILLON_ADMIN_KEY'] ?? readFileSync(join(cwd, '.carillon/admin.key'), 'utf8').trim()
    return new RunningVersion(process, all, key)
  }

  async ask<Answer = Record<string, unknown>>(request: string, body?: object, key = this.#key): Promise<Answer> {
    const [method = 'GET', path = ''] = request.split(' ')
    const response = await fetch(`${this.url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${request} answered ${response.status}: ${text}`)
    return (text === '' ? {} : JSON.parse(text)) as Answer
  }

  /** Reads all pages of a list. */
  async askAll<Item>(path: string): Promise<readonly Item[]> {
    const items: Item[] = []
    for (let cursor: string | null = ''; cursor !== null;) {
      const page: { items: Item[]; nextCursor: string | null } = await this.ask(
        `GET ${path}?limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
      )
      items.push(...page.items)
      cursor = page.nextCursor
    }
    return items
  }

  /** The runs of a schedule, once none of them is open. */
  async settledRuns(scheduleId: string): Promise<readonly RunLine[]> {
    const readSettled = async (): Promise<readonly RunLine[]> => {
      const runs = await this.askAll<RunLine>(`/schedules/${scheduleId}/runs`)
      const open = runs.filter((run) => !isRunOver(run))
      if (open.length > 0) throw new Error(`still open: ${JSON.stringify(open)}`)
      return runs
    }
    return vi.waitFor(readSettled, { interval: 100, timeout: SETTLED_WITHIN_MS })
  }

  /** All processes of the group, so that a process manager is not needed. */
  async stop(): Promise<void> {
    this.#process.signal('SIGTERM', 'group')
    await this.#process.exited
  }
}
