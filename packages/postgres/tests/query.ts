import pg from 'pg'

/** The first row of what a statement returns, over a connection of its own. */
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
