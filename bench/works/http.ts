import { createHttpTarget } from '@carillon/http'

import { within } from '../clock.ts'
import { dueAfterLoading, requireWaiting } from '../lead-time.ts'
import { loadSchedules } from '../load-schedules.ts'
import { Tally } from '../peers/tally.ts'
import type { Reading, Work } from '../work.ts'
import { openPool } from './bench-pool.ts'
import { CONCURRENCY, startCarillon } from './carillon-worker.ts'
import { Child } from './child.ts'
import type { ReceiverReady } from './receiver-process.ts'
import { requestAll } from './undici-loop.ts'
import { requireWholeLedger } from './written-rows.ts'

const TENANT = 'http'
const CONNECTIONS = 64
const PATIENCE_MS = 120_000
const ANSWER = { body: '{"ok":true}' }
const COMMON = `${CONNECTIONS} connections to a server in a process of its own, at most ${CONCURRENCY} requests at a time`

export const httpWork: Work<'http'> = {
  name: 'http',
  title: 'HTTP dispatch',
  async measure(bench, { count }) {
    await using receiver = await Child.start<ReceiverReady>('receiver-process.ts', ANSWER)
    const { origin } = await receiver.ready
    const carillon = {
      subject: 'Carillon',
      size: count,
      measure: async ({ postgresUrl }: { postgresUrl: string }) => [
        rate(
          await dispatchAll(postgresUrl, origin, count),
          `${COMMON}; from the instant they are due to the last settle`,
        ),
      ],
    }
    const loop = {
      subject: 'a bare undici loop',
      size: count,
      measure: async () => [
        rate(
          await requestAll(origin, { count, connections: CONNECTIONS, atOnce: CONCURRENCY }),
          `${COMMON}; requests of the same size, no database`,
        ),
      ],
    }
    await bench.interleave([carillon, loop], { isMigrated: true })
  },
}

function rate(value: number, note: string): Reading {
  return { metric: 'perSecond', unit: '/s', value, note }
}

/** @returns requests a second */
async function dispatchAll(url: string, origin: string, count: number): Promise<number> {
  await using pool = openPool(url)
  const dueAt = dueAfterLoading(count)
  await loadSchedules(pool, {
    count,
    kind: 'http',
    firstSlotAt: dueAt,
    spacingMs: 0,
    tenant: TENANT,
    target: { kind: 'http', url: `${origin}/call`, method: 'POST', timeoutSeconds: 30 },
    requiredScope: `http:dispatch:${new URL(origin).host}`,
  })
  const ends = new Tally(count)
  const target = createHttpTarget({ allowedHosts: ['127.0.0.1'], connections: CONNECTIONS })
  await using worker = await startCarillon(url, target)
  worker.events.on('attempt.settled', () => {
    ends.note()
  })
  requireWaiting(dueAt)
  await within(Promise.race([ends.complete, worker.failed]), dueAt + PATIENCE_MS)
  await requireWholeLedger(pool, count, TENANT)
  return count / ((ends.lastAt - dueAt) / 1000)
}
