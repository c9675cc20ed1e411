import type { Schedule } from '@carillon/api'

import type { Cli } from './cli.ts'
import { connect } from './connection.ts'
import { patiently } from './patiently.ts'

const PAGE_LIMIT = 200

/** Every schedule of the project, the newest first. */
export async function listAllSchedules(cli: Cli): Promise<Schedule[]> {
  const client = connect(cli)
  const all: Schedule[] = []
  let cursor: string | undefined
  do {
    const query = { limit: PAGE_LIMIT, ...(cursor === undefined ? {} : { cursor }) }
    const page = await patiently(cli, () => client.schedules.list(query))
    all.push(...page.items)
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined)
  return all
}
