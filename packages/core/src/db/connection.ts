import { createHash } from 'node:crypto'

import pg from 'pg'

import { parseInstant } from './instant-parser.ts'
import type { Statement } from './sql.ts'
import { isConnectionInDoubt } from './sqlstate.ts'

/** How many statements a pool prepares at most. Further ones are planned each time. */
const STATEMENTS_MAX = 100
const COMMIT: Statement = { text: 'commit', parameters: [] }
const ROLLBACK: Statement = { text: 'rollback', parameters: [] }

type Parse = (text: string) => unknown

const { TIMESTAMPTZ, INT8 } = pg.types.builtins
/** The array of TIMESTAMPTZ, which the driver's list of types lacks. */
const TIMESTAMPTZ_ARRAY = 1185
const parseDates = pg.types.getTypeParser(TIMESTAMPTZ_ARRAY as number) as (text: string) => (Date | null)[]

const PARSERS: ReadonlyMap<number, Parse> = new Map<number, Parse>([
  [TIMESTAMPTZ, parseInstant],
  [TIMESTAMPTZ_ARRAY, (text) => parseDates(text).map((date) => date && date.getTime())],
  [INT8, Number],
])

/** How the values of rows are read: as the driver does, but instants as epoch milliseconds and counts as numbers. */
const ROW_TYPES: pg.CustomTypesConfig = {
  // The driver declares one overload per type. This function covers all of them.
  getTypeParser: ((oid: number, format?: 'text' | 'binary'): unknown =>
    (format === 'binary' ? undefined : PARSERS.get(oid)) ??
    pg.types.getTypeParser(oid, format)) as pg.CustomTypesConfig['getTypeParser'],
}

/** Postgres rolled a transaction back instead of committing it, because a statement failed whose error the caller ignored. */
export class AbortedTransactionError extends Error {
  override readonly name = 'AbortedTransactionError'

  constructor() {
    super('Postgres rolled the transaction back, because one of its statements had failed')
  }
}

type AnswerListener = (statement: Statement, result: pg.QueryResult) => void | Promise<void>

/**
 * One connection while it is checked out of the pool. After an error that leaves its session in doubt, and while it is still in a
 * transaction, it is discarded instead of lent again (tests/db/broken-connection.test.ts).
 */
export class PooledConnection {
  readonly #client: pg.PoolClient
  readonly #names: StatementNames | undefined
  readonly #onAnswer: AnswerListener | undefined
  #broken: Error | undefined

  /** @param names for pools that may prepare statements */
  constructor(client: pg.PoolClient, names?: StatementNames, onAnswer?: AnswerListener) {
    this.#client = client
    this.#names = names
    this.#onAnswer = onAnswer
  }

  /** The rows of a statement. A message of several statements has several results: their rows are returned one after the other. */
  async run(statement: Statement): Promise<unknown[]> {
    const results = await this.#send(statement)
    return results.flatMap(({ rows }) => rows as unknown[])
  }

  /** @throws AbortedTransactionError if Postgres rolled back instead */
  async commit(): Promise<void> {
    const [result] = await this.#send(COMMIT)
    if (result?.command === 'ROLLBACK') throw new AbortedTransactionError()
  }

  /** Never throws: the caller throws the error that came first. If even the rollback fails, Postgres rolls back itself. */
  async rollBack(): Promise<void> {
    try {
      await this.#send(ROLLBACK)
    } catch {
      // The connection is discarded.
    }
  }

  release(): void {
    // After a rollback that failed, the next borrower would find the transaction still open.
    const isIdle = !tellsStatus(this.#client) || this.#client.getTransactionStatus() === 'I'
    this.#client.release(this.#broken ?? !isIdle)
  }

  async #send(statement: Statement): Promise<pg.QueryResult[]> {
    // A rollback that is sent after a lost query would wait for its own time limit.
    if (this.#broken !== undefined) throw this.#broken
    const { text, parameters, columns } = statement
    const name = this.#names?.nameOf(text, parameters)
    const query = { text, values: [...parameters], ...(name && { name }), ...(columns && { types: ROW_TYPES }) }
    const answer = await this.#client.query(query).catch((error: unknown) => {
      if (isConnectionInDoubt(error)) this.#broken = error instanceof Error ? error : new Error(String(error))
      throw error
    })
    const results: pg.QueryResult[] = Array.isArray(answer) ? answer : [answer]
    for (const result of this.#onAnswer ? results : []) await this.#onAnswer?.(statement, result)
    return results
  }
}

/** False for a client of an application's own pool whose version of pg is older than 8.21. */
function tellsStatus(client: pg.PoolClient): boolean {
  return typeof client.getTransactionStatus === 'function'
}

/**
 * Gives each text of a statement a name. Postgres plans a named statement once per connection. The name is a hash of the text: several
 * instances of `Db` may share a pool, and one name must never stand for two texts on a connection.
 */
export class StatementNames {
  readonly #names = new Map<string, string>()

  /**
   * Undefined for a statement without parameters, and for every further text once STATEMENTS_MAX texts have a name: so many texts mean
   * that they are built per call, and a name would never be used twice.
   */
  nameOf(text: string, parameters: readonly unknown[]): string | undefined {
    if (parameters.length === 0) return undefined
    const known = this.#names.get(text)
    if (known !== undefined || this.#names.size >= STATEMENTS_MAX) return known
    const name = `carillon_${createHash('sha256').update(text).digest('base64url').slice(0, 22)}`
    this.#names.set(text, name)
    return name
  }
}
