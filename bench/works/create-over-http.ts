import { Agent } from 'undici'

import type { Creation } from '../measure.ts'
import { inTurn } from '../peers/in-turn.ts'
import { Child } from './child.ts'
import { dailyInput } from './scheduler.ts'
import type { ServerReady } from './server-process.ts'

const ADMIN_KEY = 'bench_admin_key_of_one_measurement'
const NO_LIMIT = '1000000000'

/** Creates schedules with clients of a real server. Each client waits for its response before it sends the next request. */
export async function createOverHttp(url: string, work: { count: number; clients: number }): Promise<Creation> {
  await using server = await Child.start<ServerReady>('server-process.ts', {
    DATABASE_URL: url,
    CARILLON_PORT: '0',
    CARILLON_ADMIN_KEY: ADMIN_KEY,
    CARILLON_ALLOWED_TARGETS: '127.0.0.1',
    CARILLON_RATE_LIMIT: NO_LIMIT,
    CARILLON_MAX_SCHEDULES_PER_PROJECT: 'none',
    CARILLON_MAX_SCHEDULES_PER_USER: 'none',
    CARILLON_LOG_LEVEL: 'error',
  })
  const { url: origin } = await server.ready
  const agent = new Agent({ connections: work.clients })
  try {
    const creating = inTurn(work, (n) => create(agent, origin, n))
    return await Promise.race([creating, server.failed])
  } finally {
    await agent.destroy()
  }
}

async function create(agent: Agent, origin: string, n: number): Promise<void> {
  const { statusCode, body } = await agent.request({
    origin,
    path: '/api/v1/schedules',
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...dailyInput(n), target: { kind: 'http', url: 'http://127.0.0.1:9/nobody' } }),
  })
  const text = await body.text()
  if (statusCode !== 201) throw new Error(`expected a schedule, got ${statusCode}: ${text}`)
}
