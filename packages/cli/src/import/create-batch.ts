import { ApiError } from '@carillon/api'

import type { Cli } from '../cli.ts'
import { connect } from '../connection.ts'
import { inParallel } from '../in-parallel.ts'
import { patiently } from '../patiently.ts'
import { refusalOr } from './check-entries.ts'
import { findAgain } from './find-again.ts'
import { keyAfter } from './idempotency-keys.ts'
import type { ImportEntry } from './import-entry.ts'
import type { MadeEntry } from './made-entry.ts'

interface CreatedBatch {
  readonly created: readonly MadeEntry[]
  /** Made by an import of the same entries within a day. */
  readonly replayed: readonly MadeEntry[]
  /** Of which the service refused some: none of them was made. */
  readonly refused: readonly ImportEntry[]
}

const CONCURRENCY = 8

/** Makes the schedules of entries that nothing is to be done to afterwards, by one request: all or none. */
export async function createBatch(cli: Cli, batch: readonly ImportEntry[], firstKey: string): Promise<CreatedBatch> {
  const replayed: MadeEntry[] = []
  let [waiting, key] = [batch, firstKey]
  for (;;) {
    const answer = await refusalOr(() => createOnce(cli, waiting, key))
    if (answer instanceof ApiError) return { created: [], replayed, refused: waiting }
    const made = waiting.map((entry, index) => ({ entry, scheduleId: answer.ids[index] ?? '' }))
    if (!answer.isReplayed) return { created: made, replayed, refused: [] }
    // An answer that is given again is as old as the first: schedules may have been deleted since.
    const found = await inParallel(made, CONCURRENCY, ({ scheduleId }) => findAgain(cli, scheduleId))
    replayed.push(...made.filter((_, index) => found[index] !== undefined))
    const gone = made.filter((_, index) => found[index] === undefined)
    if (gone.length === 0) return { created: [], replayed, refused: [] }
    waiting = gone.map(({ entry }) => entry)
    key = keyAfter(key, gone.map(({ scheduleId }) => scheduleId).join('\n'))
  }
}

async function createOnce(
  cli: Cli,
  batch: readonly ImportEntry[],
  idempotencyKey: string,
): Promise<{ ids: readonly string[]; isReplayed: boolean }> {
  let isReplayed = false
  const client = connect(cli, {
    fetch: async (url, init) => {
      const response = await fetch(url, init)
      isReplayed = response.headers.get('idempotency-replayed') === 'true'
      return response
    },
  })
  const inputs = batch.map(({ input }) => input)
  const { ids } = await patiently(cli, () => client.schedules.createMany(inputs, { idempotencyKey }))
  return { ids, isReplayed }
}
