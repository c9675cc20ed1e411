import { ApiError, type Schedule } from '@carillon/api'

import type { Cli } from '../cli.ts'
import { connect } from '../connection.ts'
import { inParallel } from '../in-parallel.ts'
import { Progress } from '../output/progress.ts'
import { patiently } from '../patiently.ts'
import { refusalOf, refusalOr } from './check-entries.ts'
import { applyState, isUntouched } from './entry-state.ts'
import { idempotencyKeys, keyAfter } from './idempotency-keys.ts'
import type { ImportEntry, Refusal } from './import-entry.ts'

export interface MadeEntry {
  readonly entry: ImportEntry
  readonly scheduleId: string
}

interface CreatedEntries {
  readonly created: readonly MadeEntry[]
  /** Made by an import of the same entry within a day. */
  readonly replayed: readonly MadeEntry[]
  readonly refusals: readonly Refusal[]
}

const CONCURRENCY = 8

/** Makes a schedule of each entry, and pauses it and takes slots out as the entry says. */
export async function createEntries(cli: Cli, entries: readonly ImportEntry[]): Promise<CreatedEntries> {
  const keys = idempotencyKeys(entries)
  const created: MadeEntry[] = []
  const replayed: MadeEntry[] = []
  const refusals: Refusal[] = []
  const progress = new Progress(cli.terminal, 'importing', entries.length)
  try {
    await inParallel(entries, CONCURRENCY, async (entry) => {
      const answer = await refusalOr(() => createEntry(cli, entry, keys.get(entry) ?? ''))
      if (answer instanceof ApiError) refusals.push(refusalOf(entry, answer))
      else (answer.isReplayed ? replayed : created).push({ entry, scheduleId: answer.schedule.id })
      progress.step()
    })
  } finally {
    progress.end()
  }
  return { created, replayed, refusals }
}

interface Answer {
  readonly schedule: Schedule
  readonly isReplayed: boolean
}

async function createEntry(cli: Cli, entry: ImportEntry, firstKey: string): Promise<Answer> {
  let key = firstKey
  for (;;) {
    const answer = await createOnce(cli, entry, key)
    if (!answer.isReplayed) {
      await applyState(cli, entry, answer.schedule)
      return answer
    }
    const schedule = await findAgain(cli, answer.schedule.id)
    if (schedule !== undefined) {
      // The first answer may have been lost before it was paused.
      if (await isUntouched(cli, entry, schedule.id)) await applyState(cli, entry, schedule)
      return answer
    }
    key = keyAfter(key, answer.schedule.id)
  }
}

async function createOnce(cli: Cli, { input }: ImportEntry, idempotencyKey: string): Promise<Answer> {
  let isReplayed = false
  const client = connect(cli, {
    fetch: async (url, init) => {
      const response = await fetch(url, init)
      isReplayed = response.headers.get('idempotency-replayed') === 'true'
      return response
    },
  })
  const schedule = await patiently(cli, () => client.schedules.create(input, { idempotencyKey }))
  return { schedule, isReplayed }
}

/** An answer that is given again is as old as the first: the schedule may have been deleted since. */
async function findAgain(cli: Cli, id: string): Promise<Schedule | undefined> {
  try {
    return await patiently(cli, () => connect(cli).schedules.get(id))
  } catch (error) {
    if (error instanceof ApiError && error.code === 'schedule_not_found') return undefined
    throw error
  }
}
