import { ApiError, isUuid, PAGE_SIZE, type Client, type Schedule } from '@carillon/api'

import { CliError } from '../process/cli-error.ts'
import type { Cli } from '../process/cli.ts'
import { connect, retryWhileBusy } from './connect.ts'

const SIMILAR_SHOWN = 5

/** Gets a schedule by its id or its exact name. */
export async function getSchedule(client: Client, idOrName: string): Promise<Schedule> {
  if (isUuid(idOrName)) return client.schedules.get(idOrName)
  // The server also lists schedules whose names only contain the text.
  const similar = await listAll((page) => client.schedules.list({ q: idOrName, ...page }))
  const [found, ...others] = similar.filter(({ name }) => name === idOrName.trim())
  if (found === undefined) throw notFound(idOrName, similar)
  if (others.length === 0) return found
  const message = `expected the name of one schedule, got "${idOrName}", which ${others.length + 1} schedules have: pass an id`
  throw new CliError('name_ambiguous', message, {
    errors: [found, ...others].map(({ id, state, description }) => ({
      field: id,
      message: `${state}, ${description}`,
    })),
  })
}

function notFound(name: string, similar: readonly Schedule[]): CliError {
  const names = similar.slice(0, SIMILAR_SHOWN).map((schedule) => `"${schedule.name}"`)
  const hint = names.length === 0 ? 'see `carillon schedules list`' : `similar names are ${names.join(', ')}`
  return new CliError('schedule_not_found', `expected the id or the exact name of a schedule, got "${name}": ${hint}`)
}

/** Gets a schedule by its id; undefined if it was deleted. */
export async function findScheduleById(cli: Cli, id: string): Promise<Schedule | undefined> {
  try {
    return await retryWhileBusy(cli, () => connect(cli).schedules.get(id))
  } catch (error) {
    if (error instanceof ApiError && error.code === 'schedule_not_found') return undefined
    throw error
  }
}

/** Every schedule of the project, the newest first. */
export async function listSchedules(cli: Cli): Promise<readonly Schedule[]> {
  const client = connect(cli)
  return listAll((page) => retryWhileBusy(cli, () => client.schedules.list(page)))
}

/** The ids of the grants that any schedule may use. Grants that were created for one schedule are left out. */
export async function listSharedGrantIds(cli: Cli): Promise<ReadonlySet<string>> {
  const client = connect(cli)
  const grants = await listAll((page) => retryWhileBusy(cli, () => client.grants.list(page)))
  return new Set(grants.filter(({ scheduleId }) => scheduleId === null).map(({ id }) => id))
}

interface Page<Item> {
  readonly items: readonly Item[]
  readonly nextCursor: string | null
}

type Read<Item> = (page: { readonly limit: number; readonly cursor?: string }) => Promise<Page<Item>>

/** Reads the items after a cursor, as many pages as `limit` items need. */
export async function listUpTo<Item>(read: Read<Item>, limit: number, cursor?: string): Promise<Page<Item>> {
  const items: Item[] = []
  let next = cursor ?? null
  do {
    const size = Math.min(limit - items.length, PAGE_SIZE.max)
    const page = await read({ limit: size, ...(next === null ? {} : { cursor: next }) })
    items.push(...page.items)
    next = page.nextCursor
  } while (next !== null && items.length < limit)
  return { items, nextCursor: next }
}

async function listAll<Item>(read: Read<Item>): Promise<readonly Item[]> {
  return (await listUpTo(read, Infinity)).items
}
