import { createPool } from '@carillon/core'

import { nowMs } from '../clock.ts'
import { loadSchedules } from '../load-schedules.ts'
import { beginSlots, settleSlots, type LedgerSlot } from '../peers/ledger.ts'
import { openPool, type BenchPool } from './bench-pool.ts'
import { NOOP } from './noop-target.ts'
import { requireWholeLedger } from './written-rows.ts'

type Pool = ReturnType<typeof createPool>
type WriteAll = (pool: Pool, batches: readonly (readonly LedgerSlot[])[]) => Promise<void>

const TENANT = 'limit'
const BATCH = 1000
const FOUR = 4

export const LIMIT_NOTE =
  `the rows of a slot in two transactions for ${BATCH} slots at a time, the ids known and nothing claimed; two connections: ` +
  "while one writes a batch's end the other writes the next one's begin; Carillon's worker may begin two batches at once while " +
  'a third connection writes ends'
export const FOUR_WRITERS_NOTE =
  `the same rows, by ${FOUR} connections at once, each of which begins and ends its own batches: what the machine gives ` +
  'to somebody whose batches do not depend on each other'

/** @returns slots per second */
export function drainByLimit(url: string, count: number): Promise<number> {
  return drain(url, { count, connections: 2, writeAll: writeByTurns })
}

/** @returns slots per second */
export function drainByFourWriters(url: string, count: number): Promise<number> {
  return drain(url, { count, connections: FOUR, writeAll: writeAtOnce })
}

async function drain(url: string, p: { count: number; connections: number; writeAll: WriteAll }): Promise<number> {
  await using admin = openPool(url)
  const slot = { firstSlotAt: Math.floor(nowMs()), spacingMs: 0 }
  await loadSchedules(admin, { count: p.count, kind: NOOP, ...slot, tenant: TENANT })
  const batches = await batchesOf(admin)
  const pool = createPool({ connectionString: url, maxConnections: p.connections, isPrepared: true })
  try {
    // The connections are open and their statements planned, as those of a waiting worker are.
    await warmUp(pool, p.connections)
    const startedAt = nowMs()
    await p.writeAll(pool, batches)
    const seconds = (nowMs() - startedAt) / 1000
    await requireWholeLedger(admin, p.count, TENANT)
    return p.count / seconds
  } finally {
    await pool.end()
  }
}

async function warmUp(pool: Pool, connections: number): Promise<void> {
  const clients = await Promise.all(Array.from({ length: connections }, () => pool.connect()))
  for (const client of clients) {
    await beginSlots(client, [])
    await settleSlots(client, [])
    client.release()
  }
}

async function writeByTurns(pool: Pool, batches: readonly (readonly LedgerSlot[])[]): Promise<void> {
  let settling: Promise<void> = Promise.resolve()
  for (const batch of batches) {
    await Promise.all([beginSlots(pool, batch), settling])
    settling = settleSlots(pool, batch)
  }
  await settling
}

async function writeAtOnce(pool: Pool, batches: readonly (readonly LedgerSlot[])[]): Promise<void> {
  const queue = batches.values()
  const writer = async (): Promise<void> => {
    for (const batch of queue) {
      await beginSlots(pool, batch)
      await settleSlots(pool, batch)
    }
  }
  await Promise.all(Array.from({ length: FOUR }, writer))
}

async function batchesOf(pool: BenchPool): Promise<LedgerSlot[][]> {
  const { rows } = await pool.query<LedgerSlot>(
    `select id as "scheduleId", to_json(next_slot_at) #>> '{}' as "scheduledFor" from carillon.schedules order by due_at, id`,
  )
  return Array.from({ length: Math.ceil(rows.length / BATCH) }, (_, n) => rows.slice(n * BATCH, (n + 1) * BATCH))
}
