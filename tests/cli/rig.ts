import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createClient, type Client } from '@carillon/api'
import { createDb, EventLog } from '@carillon/core'
import { createDatabase, type TestDatabase } from '@carillon/core/testing'
import { readSettings, startEverything, type RunningCarillon } from '@carillon/server'

import { CarillonProcess, type Ended } from './carillon-process.ts'

const ADMIN_KEY = 'carillon_admin_of_the_command_line_tests'

interface RunOptions {
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
}

/** The target succeeds, fails permanently, or holds the request until the test releases it. */
type TargetPath = '/ok' | '/fail' | `/held/${string}`

class TargetServer {
  readonly #server: Server
  readonly #held = new Map<string, PromiseWithResolvers<ServerResponse>>()

  private constructor() {
    this.#server = createServer(({ url = '' }, response) => {
      if (url.startsWith('/held/')) this.#heldAt(url).resolve(response)
      else response.writeHead(url === '/fail' ? 400 : 200, { 'content-type': 'application/json' }).end('{"sent":3}')
    })
  }

  static async start(): Promise<TargetServer> {
    const target = new TargetServer()
    target.#server.listen(0, '127.0.0.1')
    await once(target.#server, 'listening')
    return target
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  #heldAt(path: string): PromiseWithResolvers<ServerResponse> {
    const held = this.#held.get(path) ?? Promise.withResolvers<ServerResponse>()
    this.#held.set(path, held)
    return held
  }

  /** Resolves with the request to a held path once it has arrived. */
  async called(path: TargetPath): Promise<ServerResponse> {
    return this.#heldAt(path).promise
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

interface RigParts {
  readonly database: TestDatabase
  readonly folder: string
  readonly service: RunningCarillon
  readonly target: TargetServer
}

/** A server with a worker, a target server, and the command line as a child process. */
export class CliRig implements AsyncDisposable {
  readonly database: TestDatabase
  /** The working directory of the command line. */
  readonly folder: string
  readonly client: Client
  readonly #service: RunningCarillon
  readonly #target: TargetServer
  readonly #begun: CarillonProcess[] = []

  private constructor({ database, folder, service, target }: RigParts) {
    this.database = database
    this.folder = folder
    this.#service = service
    this.#target = target
    this.client = createClient(service.url, ADMIN_KEY)
  }

  static async start(): Promise<CliRig> {
    const folder = mkdtempSync(join(tmpdir(), 'carillon-cli-'))
    const database = await createDatabase()
    const target = await TargetServer.start()
    const settings = readSettings({
      CARILLON_PORT: '0',
      CARILLON_DATA_DIR: join(folder, 'data'),
      DATABASE_URL: database.url,
      CARILLON_ADMIN_KEY: ADMIN_KEY,
      CARILLON_ALLOWED_TARGETS: '127.0.0.1',
      CARILLON_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
      CARILLON_LOG_LEVEL: 'silent',
    })
    const service = await startEverything(settings)
    return new CliRig({ database, folder, service, target })
  }

  get url(): string {
    return this.#service.url
  }

  /** The environment variables with the URL of the server and the key. */
  get env(): Readonly<Record<string, string>> {
    return { CARILLON_URL: this.url, CARILLON_API_KEY: ADMIN_KEY }
  }

  target(path: TargetPath): string {
    return `http://127.0.0.1:${this.#target.port}${path}`
  }

  /** Resolves once the worker has called a held path. */
  async called(path: TargetPath): Promise<void> {
    await this.#target.called(path)
  }

  /** Answers the request to a held path, once it has arrived. */
  async release(path: TargetPath): Promise<void> {
    const response = await this.#target.called(path)
    response.end('{}')
  }

  /** The id of the last event so far. */
  tail(): Promise<string> {
    return new EventLog({ db: createDb(this.database.pool) }).tail()
  }

  /** Runs a command and waits for its end. */
  run(command: string, args: readonly string[] = [], options: RunOptions = {}): Promise<Ended> {
    return this.begin(command, args, options).ended
  }

  /** Starts a command and leaves it running. */
  begin(command: string, args: readonly string[] = [], { env, input = '' }: RunOptions = {}): CarillonProcess {
    const begun = new CarillonProcess([...command.split(' '), ...args], {
      env: { ...this.env, ...env },
      cwd: this.folder,
      input,
    })
    this.#begun.push(begun)
    return begun
  }

  /** Runs a command with `--json` and parses its output. */
  async ask<Answer>(command: string, args: readonly string[] = [], options: RunOptions = {}): Promise<Answer> {
    const { stdout, stderr } = await this.run(command, [...args, '--json'], options)
    if (stdout === '') throw new Error(`no answer: ${stderr}`)
    return JSON.parse(stdout) as Answer
  }

  /** Writes a file into the working directory of the command line. */
  write(name: string, content: string): string {
    writeFileSync(join(this.folder, name), content)
    return name
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // A failed test may have left processes that wait forever.
    for (const { child } of this.#begun) child.kill('SIGKILL')
    // Closing the target ends the held requests, so that the worker can stop.
    this.#target.close()
    await this.#service.stop()
    await this.database[Symbol.asyncDispose]()
    rmSync(this.folder, { recursive: true, force: true })
  }
}
