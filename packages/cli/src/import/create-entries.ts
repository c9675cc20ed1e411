import { ApiError, type Schedule } from '@carillon/api'

import { Progress } from '../output/progress.ts'
import type { Cli } from '../process/cli.ts'
import { findScheduleById } from '../service/schedules.ts'
import { catchRefusal, refusalOf } from './check-entries.ts'
import { BATCH_CONCURRENCY, batchesOf, ENTRY_CONCURRENCY, mapConcurrently } from './entry-batches.ts'
import { applyState, isUntouched } from './entry-state.ts'
import { batchKey, createIdempotently, idempotencyKeys, keyAfterDelete } from './idempotent-create.ts'
import type { CreatedEntry, ImportEntry, RefusedEntry } from './import-entry.ts'

interface CreatedEntries {
  readonly created: CreatedEntry[]
  /** Schedules that an earlier import of the same entry created, within a day. */
  readonly replayed: CreatedEntry[]
  readonly refusals: RefusedEntry[]
}

/**
 * Creates a schedule per entry. Entries with a pause or skipped slots go first and one by one, because such a schedule is
 * active until it is paused and its slots are skipped. The others go in batches. If the server refuses an entry of a batch, all
 * entries of the batch are created one by one.
 *
 * @param file all entries of the file, which `batchesOf` needs
 */
export async function createEntries(
  cli: Cli,
  entries: readonly ImportEntry[],
  file: readonly ImportEntry[],
): Promise<CreatedEntries> {
  const keys = idempotencyKeys(entries)
  const progress = new Progress(cli.terminal, 'importing', entries.length)
  const result: CreatedEntries = { created: [], replayed: [], refusals: [] }
  const createSingly = (singles: readonly ImportEntry[]): Promise<unknown> =>
    mapConcurrently(singles, ENTRY_CONCURRENCY, async (entry) => {
      const answer = await catchRefusal(() => createEntry(cli, entry, keys.get(entry) ?? ''))
      if (answer instanceof ApiError) result.refusals.push(refusalOf(entry, answer))
      else (answer.isReplayed ? result.replayed : result.created).push({ entry, scheduleId: answer.schedule.id })
      progress.step()
    })
  try {
    await createSingly(entries.filter(hasState))
    const others = entries.filter((entry) => !hasState(entry))
    await mapConcurrently(batchesOf(others, file), BATCH_CONCURRENCY, async (batch) => {
      const { created, replayed, refused } = await createBatch(cli, batch, batchKey(batch, keys))
      result.created.push(...created)
      result.replayed.push(...replayed)
      progress.step(created.length + replayed.length)
      await createSingly(refused)
    })
  } finally {
    progress.end()
  }
  return result
}

/** True if the created schedule must still be paused, or slots of it skipped. */
function hasState({ pausedReason, skippedSlots }: ImportEntry): boolean {
  return pausedReason !== null || skippedSlots.length > 0
}

interface CreatedEntryAnswer {
  readonly schedule: Schedule
  readonly isReplayed: boolean
}

async function createEntry(cli: Cli, entry: ImportEntry, firstKey: string): Promise<CreatedEntryAnswer> {
  let key = firstKey
  for (;;) {
    const idempotencyKey = key
    const { answer: schedule, isReplayed } = await createIdempotently(cli, (client) =>
      client.schedules.create(entry.input, { idempotencyKey }),
    )
    if (!isReplayed) {
      await applyState(cli, entry, schedule)
      return { schedule, isReplayed }
    }
    const current = await findScheduleById(cli, schedule.id)
    if (current !== undefined) {
      // The earlier import may have stopped before it paused the schedule or skipped its slots.
      if (await isUntouched(cli, entry, current.id)) await applyState(cli, entry, current)
      return { schedule, isReplayed }
    }
    key = keyAfterDelete(key, schedule.id)
  }
}

interface CreatedBatch {
  readonly created: readonly CreatedEntry[]
  /** Schedules that an earlier import of the same entries created, within a day. */
  readonly replayed: readonly CreatedEntry[]
  /** Entries of a refused request: none of them was created, though only some are at fault. */
  readonly refused: readonly ImportEntry[]
}

/** Creates schedules in one request, all or none. If an earlier import created some that are deleted by now, creates those again. */
async function createBatch(cli: Cli, batch: readonly ImportEntry[], firstKey: string): Promise<CreatedBatch> {
  const replayed: CreatedEntry[] = []
  let [pending, key] = [batch, firstKey]
  for (;;) {
    const inputs = pending.map(({ input }) => input)
    const idempotencyKey = key
    const response = await catchRefusal(() =>
      createIdempotently(cli, (client) => client.schedules.createMany(inputs, { idempotencyKey })),
    )
    if (response instanceof ApiError) return { created: [], replayed, refused: pending }
    const { answer, isReplayed } = response
    const created = pending.map((entry, index) => ({ entry, scheduleId: answer.ids[index] ?? '' }))
    if (!isReplayed) return { created, replayed, refused: [] }
    // The server repeated the answer to an earlier request: some of its schedules may have been deleted since.
    const found = await mapConcurrently(created, ENTRY_CONCURRENCY, ({ scheduleId }) =>
      findScheduleById(cli, scheduleId),
    )
    replayed.push(...created.filter((_, index) => found[index] !== undefined))
    const deleted = created.filter((_, index) => found[index] === undefined)
    if (deleted.length === 0) return { created: [], replayed, refused: [] }
    pending = deleted.map(({ entry }) => entry)
    key = keyAfterDelete(key, deleted.map(({ scheduleId }) => scheduleId).join('\n'))
  }
}
