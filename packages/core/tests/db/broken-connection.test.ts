import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { createDb } from '../../src/db/database.ts'
import { createPool } from '../../src/db/pool.ts'
import { createDatabase } from '../database.ts'

/** The code with which Postgres ends a session. The session of this test goes on, so only the code says that it is unusable. */
const SESSION_ENDED = `do $$ begin raise exception 'as if ended' using errcode = '57P05'; end $$`

test('a connection is discarded after an error that ends its session', async () => {
  await using database = await createDatabase({ content: 'empty' })
  const db = createDb(createPool({ connectionString: database.url, maxConnections: 1 }))
  const session = async (): Promise<unknown> =>
    (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(db)).rows[0]?.pid

  const before = await session()
  await expect(sql.raw(SESSION_ENDED).execute(db)).rejects.toThrow('as if ended')
  const after = await session()

  expect(after).not.toBe(before)
  await db.destroy()
})
