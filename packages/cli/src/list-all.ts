import type { Schedule } from '@carillon/api'

import type { Cli } from './cli.ts'
import { connect } from './connection.ts'
import { patiently } from './patiently.ts'

const PAGE_LIMIT = 200

interface Page<Item> {
  readonly items: readonly Item[]
  readonly nextCursor: string | null
}

/** Every schedule of the project, the newest first. */
export async function listAllSchedules(cli: Cli): Promise<Schedule[]> {
  const client = connect(cli)
  return listAll(cli, (query) => client.schedules.list(query))
}

/** The ids of grants that any schedule of the project may be given: those that were not made for a single one. */
export async function listNamedGrantIds(cli: Cli): Promise<ReadonlySet<string>> {
  const client = connect(cli)
  const grants = await listAll(cli, (query) => client.grants.list(query))
  return new Set(grants.filter(({ scheduleId }) => scheduleId === null).map(({ id }) => id))
}

async function listAll<Item>(
  cli: Cli,
  read: (query: { readonly limit: number; readonly cursor?: string }) => Promise<Page<Item>>,
): Promise<Item[]> {
  const all: Item[] = []
  let cursor: string | undefined
  do {
    const query = { limit: PAGE_LIMIT, ...(cursor === undefined ? {} : { cursor }) }
    const page = await patiently(cli, () => read(query))
    all.push(...page.items)
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined)
  return all
}
