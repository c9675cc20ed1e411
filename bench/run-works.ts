import type { BenchRun } from './bench-run.ts'
import type { Peer } from './measure.ts'
import type { BenchPlan } from './plan.ts'
import type { Progress } from './progress.ts'
import type { WorkRecord } from './results.ts'
import type { Sizes, Work, WorkName } from './work.ts'

/** Every work by its name. */
export type Works = { readonly [Name in WorkName]: Work<Name> }

/**
 * Runs the works in order, as many at a time as the plan allows. A work that fails is recorded, and the others run until the end of the
 * run.
 */
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
  const workThrough = async (queue: Iterable<WorkName>): Promise<void> => {
    for (const name of queue) {
      if (p.signal.aborted) return
      records.push(await work(name))
    }
  }
  const work = async (name: WorkName): Promise<WorkRecord> => {
    const peers = p.plan.worksOfPeers.includes(name) ? p.peers : []
    const startedAt = p.progress.seconds
    try {
      await measure(p.works, name, p.run.viewOf({ work: name, rounds: p.rounds, peers }), p.plan.sizes)
    } catch (error) {
      if (!p.signal.aborted) p.run.workFailure(name, error)
    }
    const seconds = Math.round(p.progress.seconds - startedAt)
    return { name, title: p.works[name].title, sizes: p.plan.sizes[name], rounds: p.rounds, seconds }
  }
  await Promise.all(queuesOf(p.names, p.plan).map(workThrough))
  const orderOf = ({ name }: WorkRecord): number => p.names.findIndex((other) => other === name)
  return records.toSorted((a, b) => orderOf(a) - orderOf(b))
}

/** Works with peers never run concurrently, because a process can hold only one DBOS. */
function queuesOf(names: readonly WorkName[], { worksAtOnce, worksOfPeers }: BenchPlan): Iterable<WorkName>[] {
  if (worksAtOnce === 1) return [names]
  const isOfPeers = (name: WorkName): boolean => worksOfPeers.includes(name)
  const others = names.filter((name) => !isOfPeers(name)).values()
  return [names.filter(isOfPeers), ...Array.from({ length: worksAtOnce - 1 }, () => others)]
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
