/**
 * One side of a comparison of two trees. It runs works with the code of its own tree: that tree's bench and Carillon. From the tree of this
 * file it imports only files that do not import Carillon.
 */
import { existsSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import type * as Core from '@carillon/core'

import type * as BenchRunFile from '../bench-run.ts'
import type * as ClockFile from '../clock.ts'
import type { SideAnswer, SideArgument, SideOrder } from '../compare/side-message.ts'
import { databasesOf } from '../databases.ts'
import type * as GatheredFile from '../gathered.ts'
import type * as ProgressFile from '../progress.ts'
import { UnexpectedErrors } from '../unexpected-errors.ts'
import type { Bench, Part, Work, WorkName } from '../work.ts'
import { argumentOf, endWithBench, tell } from './channel.ts'

/** Parts whose subjects begin with these words measure the machine, not Carillon. */
const YARDSTICKS = ['the limit', 'a bare', 'bare']

const { side, tree, postgresUrl, patienceMs } = argumentOf() as SideArgument
const folder = realpathSync(tree)
const [core, { BenchRun }, { clockStepMs }, { Gathered }, { Progress }] = await Promise.all([
  load<typeof Core>('packages/core/src/index.ts'),
  load<typeof BenchRunFile>('bench/bench-run.ts'),
  load<typeof ClockFile>('bench/clock.ts'),
  load<typeof GatheredFile>('bench/gathered.ts'),
  load<typeof ProgressFile>('bench/progress.ts'),
])
const admin = core.createPool({ connectionString: postgresUrl, maxConnections: 2 })
// Each run numbers its databases from 1.
const [counted, warmUp] = [openRun(`${side}_`), openRun(`${side}_warm_up_`)]
let active = warmUp
new UnexpectedErrors().reportTo((error) => {
  active.run.unexpectedFailure(error)
})
process.on('message', (order) => {
  void answer(order as SideOrder)
})
endWithBench(() => Promise.resolve())
tell({})

async function answer({ work, sizes, isWarmUp }: SideOrder): Promise<void> {
  active = isWarmUp ? warmUp : counted
  const { run, gathered } = active
  let isMissing = false
  try {
    const found = await findWork(work)
    isMissing = found === undefined
    await found?.measure(withoutYardsticks(run.viewOf({ work, rounds: 1, peers: [] })), sizes[work])
  } catch (error) {
    run.workFailure(work, error)
  }
  const { figures, failures } = gathered
  tell({ figures, failures, isMissing } satisfies SideAnswer)
}

/** Finds a work by the rule in `Work`. Undefined if the tree does not have it. */
async function findWork(work: WorkName): Promise<Work | undefined> {
  const path = `bench/works/${work}.ts`
  if (!existsSync(join(folder, path))) return undefined
  const file = await load<Record<string, Work>>(path)
  return file[`${work}Work`]
}

function withoutYardsticks(bench: Bench): Bench {
  const isYardstick = ({ subject }: Part): boolean => YARDSTICKS.some((words) => subject.startsWith(words))
  return {
    ...bench,
    interleave: (parts, ground) =>
      bench.interleave(
        parts.filter((part) => !isYardstick(part)),
        ground,
      ),
  }
}

function openRun(prefix: string) {
  const gathered = new Gathered()
  const run = new BenchRun({
    postgres: databasesOf({ admin, url: postgresUrl, prefix, migrate: migrateAt }),
    redis: undefined,
    gathered,
    progress: new Progress(() => undefined),
    signal: new AbortController().signal,
    patienceMs,
    atOnce: 1,
    clockStepMs,
  })
  return { run, gathered }
}

async function migrateAt(url: string): Promise<void> {
  const pool = core.createPool({ connectionString: url })
  await core.migrate(pool)
  const db = core.createDb(pool)
  await core.ensurePartitions(db, { from: new Date(), to: new Date() })
  await pool.end()
}

async function load<Module>(path: string): Promise<Module> {
  return (await import(pathToFileURL(join(folder, path)).href)) as Module
}
