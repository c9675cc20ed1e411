import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { startBenchPostgres } from '../bench-postgres.ts'
import { describeCarillon, describeMachine, REPOSITORY } from '../machine.ts'
import type { Progress } from '../progress.ts'
import { openTree, type Tree } from './base-tree.ts'
import { pairFigures, type Comparison } from './comparison.ts'
import type { CompareOptions } from './options.ts'
import { Rounds } from './rounds.ts'
import type { SideName } from './side-message.ts'
import { Side } from './side.ts'

/** The files that load and drive the works, besides those in `works`. */
const SHARED = ['bench-run.ts', 'clock.ts', 'lead-time.ts', 'load-schedules.ts', 'policy.ts']

interface CompareOrder {
  readonly options: CompareOptions
  /** A relative folder is relative to this one. */
  readonly cwd: string
  readonly progress: Progress
  readonly signal: AbortSignal
}

/** The time limit for one round of one work of one side. */
const PATIENCE_MS = 600_000

/**
 * Creates what it needs, measures both sides in turn, and removes what it created.
 * @throws Error if the base is not available, or if a side ended unexpectedly
 */
export async function runCompare({ options, cwd, progress, signal }: CompareOrder): Promise<Comparison> {
  const startedAt = new Date()
  const note = (text: string): void => {
    progress.note(text)
  }
  await using base = await openTree(options.base, { cwd, signal, note })
  progress.note('starting Postgres')
  await using postgres = await startBenchPostgres({ isDurable: !options.isSmoke })
  await using stack = new AsyncDisposableStack()
  const start = async (side: SideName, { folder }: Pick<Tree, 'folder'>): Promise<Side> =>
    stack.use(await Side.start({ side, tree: folder, postgresUrl: postgres.url, patienceMs: PATIENCE_MS }))
  const sides = [await start('base', base), await start('current', { folder: REPOSITORY })] as const
  const rounds = new Rounds({ sides, progress, signal })
  try {
    await rounds.measure(options)
  } catch (error) {
    // If the time is up, the figures so far are kept.
    if (!signal.aborted) throw error
  }
  return {
    base: base.name,
    current: describeCarillon(),
    startedAt: startedAt.toISOString(),
    seconds: Math.round(progress.seconds),
    rounds: options.rounds,
    isComplete: !signal.aborted,
    isSmoke: options.isSmoke,
    machine: describeMachine(),
    postgres: { version: await postgres.version(), ...(await postgres.settings()) },
    pairs: pairFigures(rounds.figuresOf('base'), rounds.figuresOf('current')),
    failures: rounds.failures,
    notes: [...driversNote(base.folder), ...rounds.notes],
  }
}

function driversNote(base: string): string[] {
  const files = differingDrivers(join(base, 'bench'), join(REPOSITORY, 'bench'))
  return files.length === 0 ? [] : [`each side is driven by its own bench; these files differ: ${files.join(', ')}`]
}

/** The paths of files that exist in both benches and differ. */
function differingDrivers(base: string, current: string): readonly string[] {
  const works = readdirSync(join(current, 'works')).map((file) => join('works', file))
  return [...SHARED, ...works].filter((path) => {
    const [one, other] = [join(base, path), join(current, path)]
    return existsSync(one) && existsSync(other) && !readFileSync(one).equals(readFileSync(other))
  })
}
