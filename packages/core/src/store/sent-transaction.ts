import { CompiledQuery, sql, type ConnectionProvider, type DatabaseConnection } from 'kysely'

import type { Clock } from '../clock.ts'
import { whileCutShort, type Db, type Tx } from './database.ts'

/** What a transaction came to, and what it sent last without waiting for the answer. */
export interface Sent<Result> {
  readonly result: Result
  readonly last: Promise<unknown>
  /** Postgres holds the commit back until then, by its own clock. */
  readonly notBefore: number | null
}

interface Steps<Result, Seen> {
  readonly work: (tx: Tx) => Promise<Sent<Result>>
  /** Sent behind `commit`: sees what was committed, also by others until then. Should it fail, what was committed stays. */
  readonly look: (db: Pick<Db, 'getExecutor'>, result: Result) => Promise<Seen>
}

const BEGIN = CompiledQuery.raw('begin')
const COMMIT = CompiledQuery.raw('commit')
const ROLLBACK = CompiledQuery.raw('rollback')

/**
 * Runs a transaction without waiting where nothing is waited for: `begin` is sent with the first statement, `commit` with the
 * last one, and a look at what came of it behind that. Where connections send ahead (`isPrepared` of `createPool`) each spares a
 * round trip, and a slot begins that much sooner; where not, they wait for each other.
 *
 * Should the last statement fail, Postgres takes the `commit` behind it for a rollback: nothing is written. Again from its start
 * should Postgres have cut it short.
 */
export function transactSending<Result, Seen>(
  db: Db,
  clock: Clock,
  { work, look }: Steps<Result, Seen>,
): Promise<{ result: Result; seen: Seen | undefined }> {
  const executor = db.getExecutor()
  return whileCutShort(clock, () =>
    executor.provideConnection(async (connection) => {
      // Kysely's own transaction waits for each statement before it sends the next one.
      const sending = executor.withConnectionProvider(lending(connection))
      const tx = { getExecutor: () => sending } as unknown as Tx
      try {
        const [, { result, last, notBefore }] = await Promise.all([sending.executeQuery(BEGIN), work(tx)])
        const waited = notBefore === null ? undefined : waitUntil(tx, notBefore)
        const committed = Promise.all([last, waited, sending.executeQuery(COMMIT)])
        // Whoever throws once it is committed would have its result forgotten: of begin, runs that nobody sees through.
        const seen = look(tx, result).catch(() => undefined)
        await committed
        return { result, seen: await seen }
      } catch (error) {
        await rollBack(connection)
        throw error
      }
    }),
  )
}

/** Waits by Postgres' clock, with all that the transaction has locked. */
export async function waitUntil(tx: Tx, instant: number): Promise<void> {
  await sql`select pg_sleep(extract(epoch from ${new Date(instant)}::timestamptz - clock_timestamp()))`.execute(tx)
}

function lending(connection: DatabaseConnection): ConnectionProvider {
  return { provideConnection: (consumer) => consumer(connection) }
}

/** What went wrong first is what is told. A connection that cannot even roll back is broken, and its pool destroys it. */
async function rollBack(connection: DatabaseConnection): Promise<void> {
  try {
    await connection.executeQuery(ROLLBACK)
  } catch {
    // The server rolls back what a lost connection left.
  }
}
