import pg from 'pg'

import { typesOfConnection } from './instant-parser.ts'
import { isConnectionInDoubt } from './sqlstate.ts'

export interface PoolOptions {
  readonly connectionString: string
  /** Shown in pg_stat_activity. @default 'carillon' */
  readonly applicationName?: string
  /** @default 10 */
  readonly maxConnections?: number
  /**
   * Plans each statement once per connection instead of each time, and sends ahead what does not wait for an answer; spares
   * a slot milliseconds. Not behind a pooler that lends connections per transaction. @default false
   */
  readonly isPrepared?: boolean
  /** After which a connection that does not answer is given up. @default 30 s for a statement, 10 s to connect */
  readonly answerWithinMs?: number
  /** Acts as this role, and with its rights alone, on every connection. Not behind such a pooler either. */
  readonly role?: string
  /** Told of a connection that broke while nobody used it. The pool has let go of it already. */
  readonly onIdleError?: (error: Error) => void
}

export interface SeverablePool extends pg.Pool {
  /** Cuts every connection, for a goodbye that a silent server would not let end. What is under way fails at once. */
  sever(): void
}

const CONNECT_TIMEOUT_MS = 10_000
// The server cuts a statement first; the driver's own limit is for a socket on which no answer will ever come.
export const STATEMENT_TIMEOUT_MS = 25_000
const QUERY_TIMEOUT_MS = 30_000
export const LOCK_TIMEOUT_MS = 5000
export const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000
const STATEMENTS_MAX = 100
/**
 * Left to itself, Postgres plans a statement over partitions anew each time, in the hope of leaving some out: a millisecond for
 * a slot, for nothing. All statements here go by index whatever their parameters are.
 *
 * Of the rows of a batch it expects ten, and one of a ledger that is young: then it would rather compare each with each, kept in
 * memory, than hash them. With a thousand that was most of what a statement cost. Without the memory it hashes. And behind row-level security
 * it takes every run for open, for it may not look at how many are in which state: it would read the whole ledger to find none.
 * A plan that was made while a month was empty reads that month from end to end, and goes on doing so once it is full.
 */
const PLANNED_ONCE = '-c plan_cache_mode=force_generic_plan -c jit=off -c enable_material=off -c enable_seqscan=off'
/** Whatever the database's default: a statement after a lock must see what was committed before the lock was had. */
const READ_COMMITTED = '-c default_transaction_isolation=read\\ committed'
/** Instants come as they are read fastest. */
const SPEAKING_UTC = '-c timezone=UTC -c datestyle=ISO'

/**
 * Connections to Postgres that cannot hang for ever: a half-open socket, a lock, a statement and a transaction left open
 * each have a limit. What broke once is never lent again.
 */
export function createPool(options: PoolOptions): SeverablePool {
  const pool = new SoundPool(options.isPrepared ?? false, {
    application_name: options.applicationName ?? 'carillon',
    max: options.maxConnections ?? 10,
    connectionTimeoutMillis: Math.min(options.answerWithinMs ?? Infinity, CONNECT_TIMEOUT_MS),
    query_timeout: Math.min(options.answerWithinMs ?? Infinity, QUERY_TIMEOUT_MS),
    keepAlive: true,
    types: typesOfConnection,
    // Statements that do not wait for each other are sent together.
    pipeline: options.isPrepared ?? false,
    ...sessionOf(options),
  })
  pool.on('error', (error) => {
    // Of a pool that says goodbye it is no news: the server may go before the last of its connections has.
    if (!pool.ending) options.onIdleError?.(error)
  })
  // A client that is lent when its server goes away emits `error`, which without a listener ends the process.
  pool.on('connect', (client) => client.on('error', ignore))
  return pool
}

/**
 * What the server is told when a connection is made. A pooler that lends connections per transaction refuses all of it, so
 * nothing is said unless the connection is known to be the server's own: the transactions of the API set their limits
 * themselves.
 */
function sessionOf({ connectionString, isPrepared = false, role }: PoolOptions): pg.PoolConfig {
  if (!isPrepared && role === undefined) return { connectionString }
  const flags = [
    READ_COMMITTED,
    SPEAKING_UTC,
    ...(isPrepared ? [PLANNED_ONCE] : []),
    ...(role === undefined ? [] : [`-c role=${role}`]),
  ].join(' ')
  return {
    // The driver takes the options of the address rather than ours, and the role would be lost without a word.
    connectionString: connectionString.replace(
      /[?&]options=[^&#]*/,
      (given) => `${given}%20${encodeURIComponent(flags)}`,
    ),
    statement_timeout: STATEMENT_TIMEOUT_MS,
    lock_timeout: LOCK_TIMEOUT_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_TIMEOUT_MS,
    options: flags,
  }
}

/** Destroys a client on release if anything but a plain SQL error happened on it: after a timeout its socket is poisoned. */
class SoundPool extends pg.Pool implements SeverablePool {
  readonly #names: StatementNames | undefined
  readonly #connected = new Set<pg.PoolClient>()
  readonly #watched = new WeakSet<pg.PoolClient>()
  readonly #broken = new WeakMap<pg.PoolClient, Error>()

  constructor(isPrepared: boolean, config: pg.PoolConfig) {
    super(config)
    this.#names = isPrepared ? new StatementNames() : undefined
    this.on('connect', (client) => this.#connected.add(client))
    this.on('remove', (client) => this.#connected.delete(client))
  }

  override async connect(): Promise<pg.PoolClient>
  override connect(callback: ConnectCallback): void
  override connect(callback?: ConnectCallback): Promise<pg.PoolClient> | void {
    const lent = super.connect().then((client) => this.#watch(client))
    if (callback === undefined) return lent
    void this.#lend(lent, callback)
  }

  async #lend(lent: Promise<pg.PoolClient>, callback: ConnectCallback): Promise<void> {
    try {
      const client = await lent
      callback(undefined, client, client.release.bind(client))
    } catch (error) {
      callback(asError(error), undefined, ignore)
    }
  }

  sever(): void {
    for (const client of this.#connected) socketOf(client)?.destroy()
  }

  #watch(client: pg.PoolClient): pg.PoolClient {
    const giveBack = client.release.bind(client)
    let isLent = true
    // A client that is given back twice, because its connection broke at a bad moment, would end the process.
    client.release = (reason) => {
      if (!isLent) return
      isLent = false
      // Kysely releases every client with `false`, so the pool's own record of broken clients comes first.
      giveBack(this.#broken.get(client) ?? reason ?? false)
    }
    if (!this.#watched.has(client)) {
      this.#watched.add(client)
      const query = client.query.bind(client) as (...args: unknown[]) => unknown
      client.query = ((...args: unknown[]) => {
        const broken = this.#broken.get(client)
        // Behind a query that will never be answered, a rollback would wait for its own time limit.
        if (broken !== undefined && typeof args.at(-1) !== 'function') return Promise.reject(broken)
        const result = query(...(this.#names?.prepare(args) ?? args))
        if (!(result instanceof Promise)) return result
        const answered = result.then(asOne, (error: unknown) => {
          if (isConnectionInDoubt(error)) this.#broken.set(client, asError(error))
          throw error
        })
        // Who asked may look at the answer later: until then a failure must not end the process.
        answered.catch(ignore)
        return answered
      }) as typeof client.query
    }
    return client
  }
}

/** Gives every statement with parameters a name, under which the driver has the server plan it once. */
class StatementNames {
  readonly #names = new Map<string, string>()

  prepare(args: readonly unknown[]): readonly unknown[] {
    const [text, values] = args
    if (args.length !== 2 || typeof text !== 'string' || !Array.isArray(values) || values.length === 0) return args
    const name = this.#nameOf(text)
    return name === undefined ? args : [{ name, text, values }]
  }

  /** Undefined once there are many: then texts are being made up on the fly, and none comes again. */
  #nameOf(text: string): string | undefined {
    const known = this.#names.get(text)
    if (known !== undefined || this.#names.size >= STATEMENTS_MAX) return known
    const name = `carillon_${this.#names.size}`
    this.#names.set(text, name)
    return name
  }
}

type ConnectCallback = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  done: (release?: Error | boolean) => void,
) => void

/** A message of several statements is answered with the rows of all of them: who reads a result expects one. */
function asOne(result: unknown): unknown {
  if (!Array.isArray(result)) return result
  const results = result as readonly pg.QueryResult<object>[]
  return { ...results.at(-1), rows: results.flatMap(({ rows }) => rows) }
}

/** The driver's types do not tell that a client has a connection, and that one a socket. */
function socketOf(client: object): { destroy(): void } | undefined {
  const { connection } = client as { readonly connection?: { readonly stream?: { destroy(): void } } }
  return connection?.stream
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

function ignore(): void {
  // Who lent the client hears of it through the promise of the query.
}
