import type { Client, Schedule } from '@carillon/api'

import { CliError } from './cli-error.ts'

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i
const PAGE_LIMIT = 200
const SIMILAR_SHOWN = 5

/** A schedule by its id or its exact name. */
export async function findSchedule(client: Client, idOrName: string): Promise<Schedule> {
  if (UUID.test(idOrName)) return client.schedules.get(idOrName)
  const similar = await listSimilar(client, idOrName)
  const [found, ...others] = similar.filter(({ name }) => name === idOrName.trim())
  if (found === undefined) throw notFound(idOrName, similar)
  if (others.length === 0) return found
  throw new CliError('name_ambiguous', `${others.length + 1} schedules are called "${idOrName}": name one by its id`, {
    errors: [found, ...others].map(({ id, state, description }) => ({
      field: id,
      message: `${state}, ${description}`,
    })),
  })
}

/** Every schedule whose name contains the text: among them those that are called so. */
async function listSimilar(client: Client, q: string): Promise<Schedule[]> {
  const found: Schedule[] = []
  let cursor: string | undefined
  do {
    const page = await client.schedules.list({ q, limit: PAGE_LIMIT, ...(cursor === undefined ? {} : { cursor }) })
    found.push(...page.items)
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined)
  return found
}

function notFound(name: string, similar: readonly Schedule[]): CliError {
  const names = similar.slice(0, SIMILAR_SHOWN).map((schedule) => `"${schedule.name}"`)
  const hint = names.length === 0 ? '`carillon schedules list` shows those there are' : `there is ${names.join(', ')}`
  return new CliError('schedule_not_found', `expected the id or the exact name of a schedule, got "${name}": ${hint}`)
}
