import { createHash } from 'node:crypto'

import { canonicalJson, type Client } from '@carillon/api'

import type { Cli } from '../process/cli.ts'
import { connect, retryWhileBusy } from '../service/connect.ts'
import type { ImportEntry } from './import-entry.ts'

/**
 * An idempotency key per entry, made from its content. Importing the same file again within a day creates no schedule twice,
 * even if the first answers were lost. Equal entries of one file are numbered, because each is a schedule of its own.
 */
export function idempotencyKeys(entries: readonly ImportEntry[]): ReadonlyMap<ImportEntry, string> {
  const counts = new Map<string, number>()
  return new Map(
    entries.map((entry) => {
      const text = canonicalJson(entry.input)
      const count = (counts.get(text) ?? 0) + 1
      counts.set(text, count)
      return [entry, keyFor(`${text}\n${count}`)]
    }),
  )
}

/** The key of a batch, made from the keys of its entries. */
export function batchKey(batch: readonly ImportEntry[], keys: ReadonlyMap<ImportEntry, string>): string {
  return keyFor(batch.map((entry) => keys.get(entry) ?? '').join('\n'))
}

/**
 * The next key for an entry whose schedule was created with `key` and deleted since. With the same key the server would repeat
 * its first answer, and create nothing.
 */
export function keyAfterDelete(key: string, deletedId: string): string {
  return keyFor(`${key}\n${deletedId}`)
}

function keyFor(text: string): string {
  return `import:${createHash('sha256').update(text).digest('hex')}`
}

interface IdempotentAnswer<Answer> {
  readonly answer: Answer
  /** True if the server repeated the answer of an earlier request with the same key. */
  readonly isReplayed: boolean
}

/** Sends a create request and reports whether the server repeated an earlier answer, which only a header says. */
export async function createIdempotently<Answer>(
  cli: Cli,
  create: (client: Client) => Promise<Answer>,
): Promise<IdempotentAnswer<Answer>> {
  let isReplayed = false
  const client = connect(cli, {
    fetch: async (url, init) => {
      const response = await fetch(url, init)
      isReplayed = response.headers.get('idempotency-replayed') === 'true'
      return response
    },
  })
  const answer = await retryWhileBusy(cli, () => create(client))
  return { answer, isReplayed }
}
