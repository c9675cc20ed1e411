import pg from 'pg'

import { checkedSchema, searchPath } from './schema-name.ts'

export interface PoolOptions {
  readonly connectionString: string
  /** The schema that holds Carillon's tables. @default 'carillon' */
  readonly schema?: string
  /** Shown in pg_stat_activity. @default 'carillon' */
  readonly applicationName?: string
  /** @default 10 */
  readonly maxConnections?: number
  /**
   * Plans each statement once per connection instead of each time, and sends a statement before the previous one is answered. Only
   * for direct connections: a pooler that lends connections per transaction supports neither. @default false
   */
  readonly isPrepared?: boolean
  /** A connection that does not answer for this long is given up. @default 30 s for a statement, 10 s to connect */
  readonly answerWithinMs?: number
  /** Every connection acts as this role, with its permissions only. Only for direct connections, like `isPrepared`. */
  readonly role?: string
  /** Called when a connection breaks while it is idle. The pool has removed it already. */
  readonly onIdleError?: (error: Error) => void
}

const CONNECT_TIMEOUT_MS = 10_000
/** Postgres cancels a statement that takes longer. */
export const STATEMENT_TIMEOUT_MS = 25_000
/** The driver gives up a query that takes longer. Postgres' own limit is shorter, so this is for a socket that never answers. */
const QUERY_TIMEOUT_MS = 30_000
/** Postgres cancels a statement that waits longer for a lock. */
export const LOCK_TIMEOUT_MS = 5000
/** Postgres closes a connection whose open transaction sends nothing for longer. */
export const IDLE_IN_TRANSACTION_TIMEOUT_MS = 10_000

/**
 * Settings for statements that are planned once. Every statement here is meant to use an index, whatever its parameters.
 * - force_generic_plan: Postgres would otherwise plan four statements of every slot again on each execution, because it expects a plan
 *   for a small batch to be cheaper than the generic one. tests/db/prepared-plans.test.ts counts the plans.
 * - jit=off: these statements are short, and compiling a plan takes time. Postgres 15 to 17 would compile some of them because of
 *   enable_seqscan=off, which adds 10^10 to the cost of a scan without an alternative. tests/db/prepared-plans.test.ts shows one.
 * - enable_material=off: Postgres expects ten rows of a batch parameter, and would join it by comparing each row with each.
 *   tests/pipeline/batch-plans.test.ts fails without this setting.
 * - enable_seqscan=off: a plan made while a month was empty would read the whole month once it is full. Behind row-level security
 *   Postgres has no statistics of run states, and would read the whole ledger for a few open runs.
 *   tests/pipeline/open-run-plans.test.ts shows both.
 */
const PREPARED_FLAGS = '-c plan_cache_mode=force_generic_plan -c jit=off -c enable_material=off -c enable_seqscan=off'
/** Whatever the database's default: a statement under a lock must see what was committed before the lock was granted. */
const ISOLATION_FLAG = '-c default_transaction_isolation=read\\ committed'
/** `parseInstant` is fastest for this form. */
const TIME_FLAGS = '-c timezone=UTC -c datestyle=ISO'

/**
 * Connections to Postgres that cannot hang for ever: a half-open socket, a lock, a statement and an idle transaction each have a
 * time limit. `createDb` discards a connection that broke; a caller of `pool.connect()` has to do so itself, by
 * `client.release(error)`.
 */
export function createPool(options: PoolOptions): SeverablePool {
  const { isPrepared = false, answerWithinMs = Infinity } = options
  const config: pg.PoolConfig = {
    application_name: options.applicationName ?? 'carillon',
    max: options.maxConnections ?? 10,
    connectionTimeoutMillis: Math.min(answerWithinMs, CONNECT_TIMEOUT_MS),
    query_timeout: Math.min(answerWithinMs, QUERY_TIMEOUT_MS),
    keepAlive: true,
    pipeline: isPrepared,
    ...sessionSettings(options),
  }
  const pool = new SeverablePool(config, checkedSchema(options.schema))
  pool.on('error', (error) => {
    // While the pool ends, Postgres may close the remaining connections first. That is no failure.
    if (!pool.ending) options.onIdleError?.(error)
  })
  // A client in use emits `error` when Postgres goes away. Without a listener, that ends the process. The client's query rejects as well.
  pool.on('connect', (client) => client.on('error', ignore))
  return pool
}

/**
 * The settings that a connection sends to Postgres at its start. A pooler that lends connections per transaction refuses them all, so a
 * pool that may connect through one sends none: each transaction of the API sets its own limits instead (`transactScoped`).
 */
function sessionSettings({ connectionString, isPrepared = false, role, schema }: PoolOptions): pg.PoolConfig {
  if (!isPrepared && role === undefined) return { connectionString }
  const flags = [
    `-c search_path=${searchPath(checkedSchema(schema)).replaceAll(' ', '')}`,
    ISOLATION_FLAG,
    TIME_FLAGS,
    ...(isPrepared ? [PREPARED_FLAGS] : []),
    ...(role === undefined ? [] : [`-c role=${role}`]),
  ].join(' ')
  return {
    // The driver prefers the options in the connection string over ours. Without this, the role would be lost silently.
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

/** A pool whose connections can all be cut at once. */
export class SeverablePool extends pg.Pool {
  /** The schema that holds Carillon's tables. */
  readonly schema: string
  /** True if each connection looks names up in that schema by itself. False if a pooler may lend the connections. */
  readonly hasSearchPath: boolean
  readonly #connected = new Set<pg.PoolClient>()

  constructor(config: pg.PoolConfig, schema: string) {
    super(config)
    this.schema = schema
    this.hasSearchPath = config.options !== undefined
    this.on('connect', (client) => this.#connected.add(client))
    this.on('remove', (client) => this.#connected.delete(client))
  }

  /** Cuts every connection, so that a Postgres that does not answer cannot block a shutdown. Queries in progress fail at once. */
  sever(): void {
    for (const client of this.#connected) {
      if (client instanceof pg.Client) client.connection.stream.destroy()
    }
  }
}

/**
 * The schema of the Carillon that a pool connects to. An application that passes a pool of its own names the schema beside it.
 * @throws CarillonError if the name cannot be a schema
 */
export function schemaOf(pool: pg.Pool, schema?: string): string {
  return checkedSchema(schema ?? (pool instanceof SeverablePool ? pool.schema : undefined))
}

function ignore(): void {
  // The query's promise rejects with the same error.
}
