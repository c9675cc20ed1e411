import { ApiError, type Schedule } from '@carillon/api'

import type { Cli } from '../cli.ts'
import { connect } from '../connection.ts'
import { inParallel } from '../in-parallel.ts'
import { Progress } from '../output/progress.ts'
import { patiently } from '../patiently.ts'
import { refusalOf, refusalOr } from './check-entries.ts'
import { createBatch } from './create-batch.ts'
import { batchesOf } from './entry-batches.ts'
import { applyState, isUntouched } from './entry-state.ts'
import { findAgain } from './find-again.ts'
import { idempotencyKeys, keyAfter, keyOf } from './idempotency-keys.ts'
import type { ImportEntry, Refusal } from './import-entry.ts'
import type { MadeEntry } from './made-entry.ts'

interface CreatedEntries {
  readonly created: MadeEntry[]
  /** Made by an import of the same entry within a day. */
  readonly replayed: MadeEntry[]
  readonly refusals: Refusal[]
}

const CONCURRENCY = 8
/** While the service writes one, the next is on its way. */
const BATCHES_AT_ONCE = 2

/**
 * Makes a schedule of each entry. Those that are paused, or of which slots are taken out, are made one by one: in between they
 * come due. The others go many to a request; if the service refuses one of a request, those are made one by one as well.
 *
 * @param file all entries of the file
 */
export async function createEntries(
  cli: Cli,
  entries: readonly ImportEntry[],
  file: readonly ImportEntry[],
): Promise<CreatedEntries> {
  const keys = idempotencyKeys(entries)
  const progress = new Progress(cli.terminal, 'importing', entries.length)
  const made: CreatedEntries = { created: [], replayed: [], refusals: [] }
  const makeSingly = (singles: readonly ImportEntry[]): Promise<unknown> =>
    inParallel(singles, CONCURRENCY, async (entry) => {
      const answer = await refusalOr(() => createEntry(cli, entry, keys.get(entry) ?? ''))
      if (answer instanceof ApiError) made.refusals.push(refusalOf(entry, answer))
      else (answer.isReplayed ? made.replayed : made.created).push({ entry, scheduleId: answer.schedule.id })
      progress.step()
    })
  try {
    await makeSingly(entries.filter((entry) => !isPlain(entry)))
    await inParallel(batchesOf(entries.filter(isPlain), file), BATCHES_AT_ONCE, async (batch) => {
      const { created, replayed, refused } = await createBatch(cli, batch, keyOfAll(batch, keys))
      made.created.push(...created)
      made.replayed.push(...replayed)
      progress.step(created.length + replayed.length)
      await makeSingly(refused)
    })
  } finally {
    progress.end()
  }
  return made
}

function isPlain({ pausedReason, skippedSlots }: ImportEntry): boolean {
  return pausedReason === null && skippedSlots.length === 0
}

function keyOfAll(batch: readonly ImportEntry[], keys: ReadonlyMap<ImportEntry, string>): string {
  return keyOf(batch.map((entry) => keys.get(entry) ?? '').join('\n'))
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
