import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

import type { CadenceInput } from '@carillon/api'
import { createDb, Scheduler, type Schedule, type Target } from '@carillon/core'
import { createDatabase, type TestDatabase } from '@carillon/core/testing'
import { createHttpTarget } from '@carillon/http'

/** A lease lasts three heartbeats. Tests that wait for its expiry use short ones, tests that must keep it use long ones. */
const HEARTBEAT_MS = { short: 1500, long: 15_000 }
export const CALLER = { tenantId: 'acme', projectId: 'web', subject: 'user:alice' }
const PAYLOAD = { list: 'a', nested: { of: ['things', 1] } }

/** A call of the target that the test has not answered. */
export interface Arrival {
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly answer: (status: number) => void
}

type Row = Readonly<Record<string, unknown>>

/** A database, a target whose answers the test decides, and workers in processes of their own. */
export class CrashRig implements AsyncDisposable {
  readonly database: TestDatabase
  readonly scheduler: Scheduler
  readonly #heartbeatMs: number
  readonly #server: Server
  readonly #arrivals: Arrival[] = []
  readonly #children: ChildProcess[] = []
  #arrived = Promise.withResolvers<void>()

  private constructor(database: TestDatabase, heartbeatMs: number) {
    this.database = database
    this.#heartbeatMs = heartbeatMs
    const targets = new Map<string, Target>([['http', createHttpTarget({ allowedHosts: ['127.0.0.1'] })]])
    this.scheduler = new Scheduler({ db: createDb(database.pool), targets })
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => this.#arrive(request.headers, Buffer.concat(chunks).toString(), response))
    })
  }

  static async start(lease: keyof typeof HEARTBEAT_MS): Promise<CrashRig> {
    const rig = new CrashRig(await createDatabase(), HEARTBEAT_MS[lease])
    rig.#server.listen(0, '127.0.0.1')
    await once(rig.#server, 'listening')
    return rig
  }

  /** Starts a worker. Resolves once it has its lease and claims slots. */
  async worker(name: string): Promise<ChildProcess> {
    const script = fileURLToPath(new URL('./worker-process.ts', import.meta.url))
    const env = {
      ...process.env,
      DATABASE_URL: this.database.url,
      WORKER_NAME: name,
      HEARTBEAT_MS: String(this.#heartbeatMs),
    }
    const child = spawn(process.execPath, [script], { env, stdio: ['ignore', 'pipe', 'inherit'] })
    this.#children.push(child)
    await once(createInterface({ input: child.stdout }), 'line')
    return child
  }

  /** Creates a schedule that calls the target, with one slot a moment from now: for tests of how a slot begins. */
  create(): Promise<Schedule> {
    return this.#create({ kind: 'once', at: new Date(Date.now() + 1500).toISOString() })
  }

  /** Creates a schedule that calls the target, and runs it now. */
  async run(): Promise<Schedule> {
    const schedule = await this.#create({ kind: 'cron', expression: '0 9 1 1 *' })
    await this.scheduler.runNow(CALLER, schedule.id)
    return schedule
  }

  #create(cadence: CadenceInput): Promise<Schedule> {
    const { port } = this.#server.address() as AddressInfo
    return this.scheduler.create(CALLER, {
      name: 'once',
      cadence,
      // These tests do not test the target's time limit.
      target: {
        kind: 'http',
        url: `http://127.0.0.1:${port}/run`,
        method: 'POST',
        payload: PAYLOAD,
        timeoutSeconds: 300,
      },
    })
  }

  /** Resolves with a call of the target once it arrives. Calls are counted from 1. */
  async arrival(number: number): Promise<Arrival> {
    for (;;) {
      const arrival = this.#arrivals[number - 1]
      if (arrival !== undefined) return arrival
      await this.#arrived.promise
    }
  }

  get arrivals(): number {
    return this.#arrivals.length
  }

  /** Polls until a statement returns a row. The test's own time limit is the bound. */
  async until(text: string, values: readonly unknown[] = []): Promise<Row> {
    for (;;) {
      const { rows } = await this.database.pool.query<Row>(text, [...values])
      const [row] = rows
      if (row !== undefined) return row
      // The event happens in another process, so this polls and pauses on the server's side.
      await this.database.pool.query('select pg_sleep(0.02)')
    }
  }

  /** Resolves with the run of a schedule and its attempts once the run has ended. */
  async outcome({ id }: Schedule): ReturnType<Scheduler['getRun']> {
    const run = await this.until(`select id from carillon.runs where schedule_id = $1 and completed_at is not null`, [
      id,
    ])
    return this.scheduler.getRun(CALLER, run['id'] as string)
  }

  /** All rows that the pipeline has written about slots. */
  async ledger(): Promise<readonly Row[]> {
    const { rows } = await this.database.pool.query<Row>(`
      select runs::text as line from carillon.runs union all select attempts::text from carillon.attempts
      union all select schedules::text from carillon.schedules order by line`)
    return rows
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    this.#server.closeAllConnections()
    this.#server.close()
    await this.database[Symbol.asyncDispose]()
  }

  #arrive(headers: IncomingHttpHeaders, body: string, response: ServerResponse): void {
    const answer = (status: number): void => void response.writeHead(status).end()
    this.#arrivals.push({ headers, body, answer })
    this.#arrived.resolve()
    this.#arrived = Promise.withResolvers()
  }
}

/** Kills a process as a power cut would. Resolves once it has exited. */
export async function killed(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}
