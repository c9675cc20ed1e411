import { cpSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'

import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'

import { findClaimant, startPostgres, type EmbeddedPostgres, type RestartListener } from '../src/index.ts'
import { createFolder } from './folder.ts'
import { query } from './query.ts'

const settings = { fsync: 'off' }
const isLinux = process.platform === 'linux'

type ListenerCall =
  | { readonly kind: 'ended'; readonly log: readonly string[] }
  | { readonly kind: 'failed'; readonly error: unknown; readonly retryInMs: number }
  | { readonly kind: 'restarted' }

/** Records all calls. `hook` runs synchronously within each call. */
class Recorder implements RestartListener {
  readonly calls: ListenerCall[] = []
  hook: (call: ListenerCall) => void = () => undefined
  #grown = Promise.withResolvers<void>()

  ended(log: readonly string[]): void {
    this.#record({ kind: 'ended', log })
  }

  failed(error: unknown, retryInMs: number): void {
    this.#record({ kind: 'failed', error, retryInMs })
  }

  restarted(): void {
    this.#record({ kind: 'restarted' })
  }

  get kinds(): string[] {
    return this.calls.map(({ kind }) => kind)
  }

  /** Resolves with the last call once there are `count` calls of a kind. */
  async waitFor<Kind extends ListenerCall['kind']>(kind: Kind, count = 1): Promise<ListenerCall & { kind: Kind }> {
    for (;;) {
      const found = this.calls.filter((call): call is ListenerCall & { kind: Kind } => call.kind === kind)[count - 1]
      if (found !== undefined) return found
      await this.#grown.promise
    }
  }

  #record(call: ListenerCall): void {
    this.calls.push(call)
    this.#grown.resolve()
    this.#grown = Promise.withResolvers()
    this.hook(call)
  }
}

async function setup() {
  const folder = createFolder()
  const dataDir = join(folder, 'data')
  const restarts = new Recorder()
  const postgres = await startPostgres({ dataDir, settings, restarts })
  onTestFinished(() => postgres.stop())
  await query(postgres.url, `create table kept as select 'data' as content`)
  return { folder, dataDir, restarts, postgres }
}

function kill(dataDir: string): void {
  process.kill(Number.parseInt(readFileSync(join(dataDir, 'postmaster.pid'), 'utf8'), 10), 'SIGKILL')
}

/** All processes of a server, found by their working directory. */
function processesIn(dataDir: string): number[] {
  const { ino } = statSync(dataDir)
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && inodeOf(`/proc/${name}/cwd`) === ino)
    .map(Number)
}

function inodeOf(path: string): number | undefined {
  try {
    return statSync(path).ino
  } catch {
    return undefined
  }
}

/** Makes a connection compute for minutes without a wait. */
async function compute({ url }: EmbeddedPostgres): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  const computing = client.query('select count(*) from generate_series(1, 1000000000) a, generate_series(1, 1000) b')
  computing.catch(() => undefined)
  const isActive = `select count(*)::int as active from pg_stat_activity where state = 'active' and query like '%series%'`
  while (JSON.stringify(await query(url, isActive)) !== '{"active":2}');
}

test('a server that is killed repeatedly restarts on the same port with its data', async () => {
  const { dataDir, restarts, postgres } = await setup()
  const claimants: unknown[] = []
  restarts.hook = () => claimants.push(findClaimant(dataDir))

  for (const times of [1, 2, 3]) {
    kill(dataDir)
    await restarts.waitFor('restarted', times)
    expect(await query(postgres.url, 'select content from kept')).toEqual({ content: 'data' })
  }

  expect(restarts.kinds).toEqual(['ended', 'restarted', 'ended', 'restarted', 'ended', 'restarted'])
  expect(claimants).toEqual(Array.from({ length: 6 }, () => process.pid))
  await postgres.stop()
  expect(findClaimant(dataDir)).toBeUndefined()
  expect(existsSync(join(dataDir, 'postmaster.pid'))).toBe(false)
})

test('a server recovers by itself if one of its backends is killed', async () => {
  const { restarts, postgres } = await setup()
  const { url } = postgres
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await client.connect()
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')

  const disconnected = new Promise((resolve) => client.once('end', resolve))
  process.kill(rows[0]?.pid ?? 0, 'SIGKILL')
  await disconnected
  // Postgres does not report its recovery, so this polls with new connections. The test's own time limit is the bound.
  let answer: unknown
  while (answer === undefined) answer = await query(url, 'select content from kept').catch(() => undefined)

  expect(answer).toEqual({ content: 'data' })
  expect(restarts.kinds).toEqual([])
})

test('the log passed to the listener contains nothing about statements', async () => {
  const { dataDir, restarts, postgres } = await setup()
  await query(postgres.url, 'create table rows (id int check (id > 0))')
  await expect(query(postgres.url, 'insert into rows values (-42)')).rejects.toMatchObject({ code: '23514' })

  kill(dataDir)
  const { log } = await restarts.waitFor('ended')

  expect(log.length).toBeGreaterThan(0)
  expect(log.join('\n')).not.toMatch(/-42|insert into/)
  await restarts.waitFor('restarted')
})

test.runIf(isLinux)(
  'a backend that still computes after its server was killed does not prevent the restart',
  async () => {
    const { dataDir, restarts, postgres } = await setup()
    await compute(postgres)

    kill(dataDir)
    await restarts.waitFor('restarted')

    expect(await query(postgres.url, 'select content from kept')).toEqual({ content: 'data' })
  },
)

test('a database that was moved away is reported, not replaced by an empty one, and is used again once it is there', async () => {
  const { folder, dataDir, restarts, postgres } = await setup()
  const [away, copy] = [join(folder, 'away'), join(folder, 'copy')]
  const lock = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8')
  renameSync(dataDir, away)

  process.kill(Number.parseInt(lock, 10), 'SIGKILL')
  const [first, third] = [await restarts.waitFor('failed', 1), await restarts.waitFor('failed', 3)]
  const isMade = existsSync(dataDir)
  // Like a restored backup: a complete folder without the claim file.
  const isOfDatabase = (path: string): boolean => !path.includes('.carillon-claim')
  cpSync(away, copy, { recursive: true, filter: isOfDatabase, preserveTimestamps: true })
  renameSync(copy, dataDir)
  await restarts.waitFor('restarted')

  expect(first.error).toMatchObject({
    code: 'database_missing',
    message: `the database in ${dataDir} is gone: put it back, or stop and start again to get a new one`,
  })
  expect([first.retryInMs, third.retryInMs]).toEqual([400, 1600])
  expect(isMade).toBe(false)
  expect(await query(postgres.url, 'select content from kept')).toEqual({ content: 'data' })
  expect(findClaimant(dataDir)).toBe(process.pid)
  await postgres.stop()
  expect(findClaimant(dataDir)).toBeUndefined()
})

test.each([
  ['global/pg_control', /could not open file/],
  ['pg_wal', /required WAL directory "pg_wal" does not exist/],
])(
  'a restart of a database without its %s is retried, with the message of Postgres, until the database is complete',
  async (part, reason) => {
    const { folder, dataDir, restarts, postgres } = await setup()
    const [path, away] = [join(dataDir, part), join(folder, 'away')]
    renameSync(path, away)

    kill(dataDir)
    const { error } = await restarts.waitFor('failed', 2)
    renameSync(away, path)
    await restarts.waitFor('restarted')

    expect(error).toMatchObject({ code: 'start_failed', message: expect.stringMatching(reason) as string })
    expect((error as { log: string[] }).log.join('\n')).toMatch(reason)
    expect(await query(postgres.url, 'select content from kept')).toEqual({ content: 'data' })
  },
)

test('a start that ends in a panic reports the reason, not the log lines after it', async () => {
  const { dataDir, postgres } = await setup()
  await postgres.stop()
  // Truncates the only WAL segment that recovery would read.
  for (const name of readdirSync(join(dataDir, 'pg_wal'))) {
    if (/^[0-9A-F]{24}$/.test(name)) writeFileSync(join(dataDir, 'pg_wal', name), '')
  }

  await expect(startPostgres({ dataDir, settings })).rejects.toMatchObject({
    code: 'start_failed',
    message: expect.stringMatching(/: could not locate a valid checkpoint record/) as string,
  })
})

test('a restart waits for its port if another program has taken it, so client URLs stay valid', async () => {
  const { dataDir, restarts, postgres } = await setup()
  const taker = createServer()
  restarts.hook = ({ kind }) => {
    if (kind === 'ended') taker.listen(postgres.port, '127.0.0.1')
  }

  kill(dataDir)
  const { error } = await restarts.waitFor('failed', 2)
  taker.close()
  await restarts.waitFor('restarted')

  expect(error).toMatchObject({ code: 'port_in_use' })
  expect(await query(postgres.url, 'select content from kept')).toEqual({ content: 'data' })
})

test('a listener that throws does not prevent the restart', async () => {
  const { dataDir, restarts, postgres } = await setup()
  restarts.hook = () => {
    throw new Error('the log is full')
  }

  kill(dataDir)
  await restarts.waitFor('restarted')

  expect(await query(postgres.url, 'select content from kept')).toEqual({ content: 'data' })
})

/** Points of a restart at which `stop` may be called. */
const MOMENTS: Record<string, (setup: Awaited<ReturnType<typeof createMoment>>) => Promise<void>> = {
  'before the exit is noticed': async () => undefined,
  'while it waits for the next try': async ({ restarts }) => void (await restarts.waitFor('ended')),
  'once the new server is there': async ({ dataDir, restarts, pid }) => {
    await restarts.waitFor('ended')
    while (processesIn(dataDir).every((other) => other === pid)) await setImmediate()
  },
  'once the new server has its lock': async ({ dataDir, pid }) => {
    while ([undefined, pid].includes(lockHolderOf(dataDir))) await setImmediate()
  },
  'when it is back': async ({ restarts }) => void (await restarts.waitFor('restarted')),
}

/** The process id in the server's lock file; undefined without one. The server may remove the file at any moment. */
function lockHolderOf(dataDir: string): number | undefined {
  try {
    const pid = Number.parseInt(readFileSync(join(dataDir, 'postmaster.pid'), 'utf8'), 10)
    return Number.isNaN(pid) ? undefined : pid
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function createMoment() {
  const made = await setup()
  const pid = Number.parseInt(readFileSync(join(made.dataDir, 'postmaster.pid'), 'utf8'), 10)
  return { ...made, pid }
}

test.runIf(isLinux).each(Object.keys(MOMENTS))(
  'a stop during a restart, %s, leaves no process, and the database can be started again',
  async (moment) => {
    const made = await createMoment()
    const { dataDir, restarts, postgres, pid } = made

    process.kill(pid, 'SIGKILL')
    await MOMENTS[moment]?.(made)
    await postgres.stop()
    const [left, claimant, kinds] = [processesIn(dataDir), findClaimant(dataDir), restarts.kinds]
    await using next = await startPostgres({ dataDir, settings })

    expect({ left, claimant }).toEqual({ left: [], claimant: undefined })
    expect(await query(next.url, 'select content from kept')).toEqual({ content: 'data' })
    expect(restarts.kinds).toEqual(kinds)
  },
)

test.runIf(isLinux)('stop ends a backend that still computes after its server was killed', async () => {
  const { dataDir, postgres } = await setup()
  await compute(postgres)

  kill(dataDir)
  await postgres.stop()

  expect(processesIn(dataDir)).toEqual([])
})

test('a server that cannot be started again can be stopped', async () => {
  const { dataDir, restarts, postgres } = await setup()
  const lock = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8')
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 20 })

  process.kill(Number.parseInt(lock, 10), 'SIGKILL')
  await restarts.waitFor('failed')
  await postgres.stop()

  expect(existsSync(dataDir)).toBe(false)
  expect(restarts.kinds).not.toContain('restarted')
})
