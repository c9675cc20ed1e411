import { createPool } from '@carillon/core'

import type { Creation, Peer } from '../measure.ts'
import { inTurn } from '../peers/in-turn.ts'
import type { Bench, Part, Reading, Sizes, Work } from '../work.ts'
import { insertBareSchedule } from './bare-schedules.ts'
import { createOverHttp } from './create-over-http.ts'
import { ownPart } from './own-database.ts'
import { CALLER, dailyInput, openScheduler } from './scheduler.ts'
import { requireMade } from './written-rows.ts'

type Asked = Sizes['create']

export const createWork: Work<'create'> = {
  name: 'create',
  title: 'Single creates',
  async measure(bench, work) {
    const parts = [...ownParts(bench, work), ...bench.peers.flatMap((peer) => peerPart(peer, work))]
    await bench.interleave(parts, { isMigrated: false })
  },
}

function ownParts(bench: Bench, work: Asked): Part[] {
  const part = (subject: string, note: string, create: (url: string, work: Asked) => Promise<Creation>): Part =>
    ownPart(bench, { subject, size: work.count }, async (url) => {
      const creation = await create(url, work)
      await requireMade(url, work.count)
      return [rateOf(creation, note)]
    })
  return [
    part(
      'Carillon, library',
      `${work.clients} clients in this process, quotas off; what they ask for at once is written together`,
      createByLibrary,
    ),
    part(
      'a bare transaction',
      `begin, one statement that inserts the same rows, commit; ${work.clients} connections`,
      createBare,
    ),
    part(
      'Carillon, HTTP',
      `${work.clients} clients on kept-alive connections to a server in a process of its own; its target is of kind http`,
      createOverHttp,
    ),
  ]
}

function rateOf({ count, seconds }: Creation, note?: string): Reading {
  return { metric: 'perSecond', unit: '/s', value: count / seconds, ...(note === undefined ? {} : { note }) }
}

function peerPart({ name, create, rounds }: Peer, work: Asked): Part[] {
  if (create === undefined) return []
  const measure: Part['measure'] = async (ground) => [rateOf(await create(ground, work))]
  return [{ subject: name, size: work.count, ...(rounds === undefined ? {} : { rounds }), measure }]
}

async function createByLibrary(url: string, work: Asked): Promise<Creation> {
  await using open = openScheduler(url, work.clients)
  return await inTurn(work, (n) => open.scheduler.create(CALLER, dailyInput(n)))
}

async function createBare(url: string, work: Asked): Promise<Creation> {
  const pool = createPool({ connectionString: url, maxConnections: work.clients, isPrepared: true })
  try {
    return await inTurn(work, async (n) => {
      const client = await pool.connect()
      try {
        await client.query('begin')
        await insertBareSchedule(client, n)
        await client.query('commit')
      } finally {
        client.release()
      }
    })
  } finally {
    await pool.end()
  }
}
