import { expect, test } from 'vitest'

import { AbortedTransactionError } from '../../src/db/connection.ts'
import { createDb } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { readSnapshot, transact, transactPipelined } from '../../src/db/transact.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { createDatabase } from '../database.ts'
import { sql } from '../sql.ts'

/** Raises the code with which Postgres ends a session. The session itself continues, so only the code shows that it ended. */
const SESSION_ENDED = `do $$ begin raise exception 'as if ended' using errcode = '57P05'; end $$`

test('a connection is discarded after an error that ends its session', async () => {
  await using database = await createDatabase({ content: 'empty' })
  // On other pools the statement would be in a transaction, and its connection be discarded because that is still open.
  const db = createDb(createPool({ connectionString: database.url, maxConnections: 1, isPrepared: true }))
  const session = async (): Promise<unknown> =>
    (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(db)).rows[0]?.pid

  const before = await session()
  await expect(sql.raw(SESSION_ENDED).execute(db)).rejects.toThrow('as if ended')
  const after = await session()

  expect(after).not.toBe(before)
  await db.close()
})

test('a connection that is released in the middle of a transaction is discarded', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const db = createDb(createPool({ connectionString: database.url, maxConnections: 1 }))

  // As if Postgres had cancelled the rollback.
  await db.withConnection(async (connection) => {
    await sql`begin`.execute(connection)
    await expect(sql`select 1 / 0`.execute(connection)).rejects.toThrow('division by zero')
  })

  expect((await sql`select 1 as one`.execute(db)).rows).toEqual([{ one: 1 }])
  await db.close()
})

test('a transaction whose statement failed rejects at its commit, even if its work ignored the error', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const db = createDb(createPool({ connectionString: database.url, isPrepared: true }))
  const ignored = Promise.resolve()

  const plain = transact(db, systemClock, async (tx) => {
    await sql`select 1 / 0`.execute(tx).catch(() => ignored)
  })
  await expect(plain).rejects.toThrow(AbortedTransactionError)
  const pipelined = transactPipelined(db, systemClock, {
    work: async (tx) => {
      await sql`select 1 / 0`.execute(tx).catch(() => ignored)
      return { result: 'a result that was rolled back', last: ignored, notBefore: null }
    },
    look: () => ignored,
  })
  await expect(pipelined).rejects.toThrow(AbortedTransactionError)
  await db.close()
})

test('a pipelined transaction whose last statement failed rejects with the error of that statement', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const db = createDb(createPool({ connectionString: database.url, isPrepared: true }))

  const transaction = transactPipelined(db, systemClock, {
    work: async (tx) => ({ result: null, last: sql`select 1 / 0`.execute(tx), notBefore: null }),
    look: async () => undefined,
  })

  await expect(transaction).rejects.toThrow('division by zero')
  await db.close()
})

test('a pipelined transaction whose last statement failed lets the queries after its commit end before it rejects', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const db = createDb(createPool({ connectionString: database.url, maxConnections: 1 }))
  const looked: string[] = []

  const transaction = transactPipelined(db, systemClock, {
    work: async (tx) => ({ result: null, last: sql`select 1 / 0`.execute(tx), notBefore: null }),
    look: async (after) => {
      for (const query of ['first', 'second']) {
        await sql`select pg_sleep(0.05)`.execute(after)
        looked.push(query)
      }
    },
  })

  await expect(transaction).rejects.toThrow('division by zero')
  expect(looked).toEqual(['first', 'second'])
  await db.close()
})

test('two instances on one pool of prepared statements do not mix up their statements', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const pool = createPool({ connectionString: database.url, maxConnections: 1, isPrepared: true })

  const [one, other] = [createDb(pool), createDb(pool)]
  const first = await sql`select ${'a'}::text as answer`.execute(one)
  const second = await sql`select upper(${'b'}::text) as answer`.execute(other)

  expect([first.rows, second.rows]).toEqual([[{ answer: 'a' }], [{ answer: 'B' }]])
  await pool.end()
})

test('a snapshot that is read cannot be written to', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const db = createDb(createPool({ connectionString: database.url }))

  const write = readSnapshot(db, async (tx) => sql`create table t ()`.execute(tx))

  await expect(write).rejects.toThrow('read-only transaction')
  await db.close()
})
