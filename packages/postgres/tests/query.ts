import pg from 'pg'

/** Returns the first row of a statement, over a new connection. */
export async function query(url: string, statement: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<Record<string, unknown>>(statement)
    return rows[0]
  } finally {
    await client.end()
  }
}
