import type { Drain, Peer } from '../measure.ts'
import type { Bench, Part, Reading, Work } from '../work.ts'
import { CONCURRENCY } from './carillon-worker.ts'
import { drainByCarillon } from './drain-by-carillon.ts'
import { drainByFourWriters, drainByLimit, FOUR_WRITERS_NOTE, LIMIT_NOTE } from './limit.ts'
import { ownPart } from './own-database.ts'

interface Asked {
  readonly count: number
  readonly patienceMs: number
}

const CARILLON_NOTE = `one worker that holds at most ${CONCURRENCY} runs at a time; a run, an attempt and the next slot of each`

export const drainWork: Work<'drain'> = {
  name: 'drain',
  title: 'Drain: all due at one instant',
  async measure(bench, { counts, patienceMs }) {
    const parts = counts
      .map((count) => ({ count, patienceMs }))
      .flatMap((work) => [...ownParts(bench, work), ...bench.peers.flatMap((peer) => peerPart(peer, work))])
    await bench.interleave(parts, { isMigrated: false })
  },
}

export function drainReadings({ count, seconds, firstMs }: Drain, note?: string): Reading[] {
  return [
    { metric: 'slotsPerSecond', unit: '/s', value: count / seconds, ...(note === undefined ? {} : { note }) },
    { metric: 'firstMs', unit: 'ms', value: firstMs },
  ]
}

function ownParts(bench: Bench, work: Asked): Part[] {
  const size = work.count
  const limit = (subject: string, note: string, drain: (url: string, count: number) => Promise<number>): Part =>
    ownPart(bench, { subject, size }, async (url) => [
      { metric: 'slotsPerSecond', unit: '/s', value: await drain(url, size), note },
    ])
  return [
    ownPart(bench, { subject: 'Carillon', size }, async (url) =>
      drainReadings(await drainByCarillon(url, work), CARILLON_NOTE),
    ),
    limit('the limit', LIMIT_NOTE, drainByLimit),
    limit('the limit, four writers', FOUR_WRITERS_NOTE, drainByFourWriters),
  ]
}

function peerPart({ name, drain, rounds }: Peer, work: Asked): Part[] {
  if (drain === undefined) return []
  const measure: Part['measure'] = async (ground) => drainReadings(await drain(ground, work))
  return [{ subject: name, size: work.count, ...(rounds === undefined ? {} : { rounds }), measure }]
}
