import type { Peer } from '../measure.ts'
import type { Part, Sizes, Work } from '../work.ts'
import { latenessOfCarillon } from './lateness-of-carillon.ts'
import { ownPart } from './own-database.ts'
import { quantiles, WARM_UP, warmLateness } from './quantiles.ts'

const NOTE = `the ${WARM_UP} slots before them are not counted`

export const latenessWork: Work<'lateness'> = {
  name: 'lateness',
  title: 'Lateness of sparse slots',
  async measure(bench, sizes) {
    const own = ownPart(bench, { subject: 'Carillon', size: sizes.slots }, async (url) =>
      quantiles(await warmLateness(sizes, (work) => latenessOfCarillon(url, work)), NOTE),
    )
    await bench.interleave([own, ...bench.peers.flatMap((peer) => peerPart(peer, sizes))], { isMigrated: false })
  },
}

/** Peers get one round, because no goal compares them here. */
function peerPart({ name, lateness }: Peer, work: Sizes['lateness']): Part[] {
  if (lateness === undefined) return []
  const measure: Part['measure'] = async (ground) =>
    quantiles(await warmLateness(work, (asked) => lateness(ground, asked)), NOTE)
  return [{ subject: name, size: work.slots, rounds: 1, measure }]
}
