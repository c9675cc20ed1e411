import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { USER_ENV } from '../packages/user-env.ts'
import { findFreePort, NpmStart } from '../service/npm-start.ts'

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

  static async start({ command, args, cwd, env = {}, ready }: RunOptions): Promise<RunningVersion> {
    const port = String(await findFreePort())
    const all = { ...USER_ENV, CARILLON_PORT: port, CARILLON_URL: `http://127.0.0.1:${port}`, ...env }
    const process = new NpmStart({ cwd, env: all, command: `${command} ${args}` })
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

  /** All processes of the group, so that a process manager is not needed. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.#process.signal(signal, 'group')
    await this.#process.exited
  }
}
