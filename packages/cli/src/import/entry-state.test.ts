import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { PAGE_SIZE } from '@carillon/api'
import { describe, expect, onTestFinished, test } from 'vitest'

import type { Cli } from '../process/cli.ts'
import { isUntouched } from './entry-state.ts'
import type { ImportEntry } from './import-entry.ts'

interface Change {
  readonly change: string
  readonly reason?: string
}

const ENTRY = { pausedReason: 'moving' } as ImportEntry
const REQUESTED: Change = { change: 'run_requested' }
const CREATED: Change = { change: 'created' }
const EDITED: Change = { change: 'edited' }

/** A server with a schedule of this history, the latest change first. Counts the pages that it was asked for. */
async function serve(
  history: readonly Change[],
): Promise<{ isUntouched: () => Promise<boolean>; pages: () => number }> {
  let pages = 0
  const server = createServer(({ url = '' }, response) => {
    pages += 1
    const query = new URL(url, 'http://localhost').searchParams
    const [from, limit] = [Number(query.get('cursor') ?? 0), Number(query.get('limit'))]
    const items = history.slice(from, from + limit).map(({ change, reason = null }) => ({ change, reason }))
    const nextCursor = from + limit < history.length ? String(from + limit) : null
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ items, nextCursor }))
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  onTestFinished(() => server.close().closeAllConnections())
  const { port } = server.address() as AddressInfo
  const env = { CARILLON_URL: `http://127.0.0.1:${port}`, CARILLON_API_KEY: 'a-key' }
  const cli = { env, cwd: '.', signal: new AbortController().signal } as Partial<Cli> as Cli
  return { isUntouched: () => isUntouched(cli, ENTRY, 'an-id'), pages: () => pages }
}

function requested(count: number): readonly Change[] {
  return Array.from({ length: count }, () => REQUESTED)
}

describe('a schedule of an import that failed', () => {
  test.each<[what: string, history: readonly Change[], expected: boolean]>([
    ['was only created', [CREATED], true],
    [
      'was paused and skipped a slot',
      [{ change: 'slot_skipped' }, { change: 'paused', reason: 'moving' }, CREATED],
      true,
    ],
    ['had runs requested and cancelled', [{ change: 'run_cancelled' }, REQUESTED, CREATED], true],
    ['was edited', [EDITED, CREATED], false],
    ['was paused by a user', [{ change: 'paused', reason: 'my holiday' }, CREATED], false],
    ['was resumed', [{ change: 'resumed' }, { change: 'paused', reason: 'moving' }, CREATED], false],
  ])('that %s', async (_, history, expected) => {
    expect(await (await serve(history)).isUntouched()).toBe(expected)
  })

  test('was edited before a thousand requested runs: the edit is found on a later page', async () => {
    const server = await serve([...requested(1000), EDITED, CREATED])

    expect(await server.isUntouched()).toBe(false)
    expect(server.pages()).toBe(6)
  })

  test('had a thousand runs requested, and no other change', async () => {
    const server = await serve([...requested(1000), CREATED])

    expect(await server.isUntouched()).toBe(true)
  })

  test('counts as changed once an edit is found, and older pages are not read', async () => {
    const server = await serve([...requested(10), EDITED, ...requested(1000), CREATED])

    expect(await server.isUntouched()).toBe(false)
    expect(server.pages()).toBe(1)
  })

  test('counts as changed if its history has more lines than an import reads', async () => {
    const most = 10 * PAGE_SIZE.max
    const whole = await serve([...requested(most - 1), CREATED])
    const longer = await serve([...requested(most), CREATED])

    expect([await whole.isUntouched(), whole.pages()]).toEqual([true, 10])
    expect([await longer.isUntouched(), longer.pages()]).toEqual([false, 10])
  })
})
