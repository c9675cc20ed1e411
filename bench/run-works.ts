import type { BenchRun } from './bench-run.ts'
import type { Peer } from './measure.ts'
import type { BenchPlan } from './plan.ts'
import type { Progress } from './progress.ts'
import type { WorkRecord } from './results.ts'
import type { Sizes, Work, WorkName } from './work.ts'

/** Every work by its name. */
export type Works = { readonly [Name in WorkName]: Work<Name> }

/** Does the works one after the other. One that fails is recorded; the rest goes on until the run is to end. */
export async function runWorks(p: {
  run: BenchRun
  works: Works
  names: readonly WorkName[]
  plan: BenchPlan
  rounds: number
  peers: readonly Peer[]
  progress: Progress
  signal: AbortSignal
}): Promise<readonly WorkRecord[]> {
  const records: WorkRecord[] = []
  for (const name of p.names) {
    if (p.signal.aborted) break
    const peers = p.plan.worksOfPeers.includes(name) ? p.peers : []
    const startedAt = p.progress.seconds
    try {
      await measure(p.works, name, p.run.viewOf({ work: name, rounds: p.rounds, peers }), p.plan.sizes)
    } catch (error) {
      if (!p.signal.aborted) p.run.workFailure(name, error)
    }
    const seconds = Math.round(p.progress.seconds - startedAt)
    records.push({ name, title: p.works[name].title, sizes: p.plan.sizes[name], rounds: p.rounds, seconds })
  }
  return records
}

function measure<Name extends WorkName>(
  works: { readonly [Key in Name]: Work<Key> },
  name: Name,
  bench: ReturnType<BenchRun['viewOf']>,
  sizes: Sizes,
): Promise<void> {
  const work: Work<Name> = works[name]
  return work.measure(bench, sizes[name])
}
