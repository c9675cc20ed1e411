import { randomUUID } from 'node:crypto'

import { Agent } from 'undici'

import { inTurn } from '../peers/in-turn.ts'

const SCHEDULE_ID = randomUUID()
const SLOT = new Date()
/** The headers have as many bytes as those of a slot. */
const HEADERS = {
  'Idempotency-Key': `sched:${SCHEDULE_ID}:${SLOT.getTime()}`,
  'Carillon-Schedule-Id': SCHEDULE_ID,
  'Carillon-Scheduled-For': SLOT.toISOString(),
  'Carillon-Attempt': '1',
  'Carillon-Run-Id': randomUUID(),
  traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
  'User-Agent': 'Carillon/0.1.0',
  'Content-Type': 'application/json',
}

/**
 * Sends the same requests as Carillon and reads their answers, without a scheduler.
 * @returns requests per second
 */
export async function requestAll(
  origin: string,
  p: { count: number; connections: number; atOnce: number },
): Promise<number> {
  const agent = new Agent({ connections: p.connections, pipelining: 1 })
  try {
    const { seconds } = await inTurn({ count: p.count, clients: p.atOnce }, async (n) => {
      const body = JSON.stringify({ number: n })
      const answer = await agent.request({ origin, path: '/call', method: 'POST', headers: HEADERS, body })
      await answer.body.text()
      if (answer.statusCode !== 200) throw new Error(`expected 200, got ${answer.statusCode}`)
    })
    return p.count / seconds
  } finally {
    await agent.destroy()
  }
}
