import { startBenchPostgres } from './bench-postgres.ts'
import { BenchRun } from './bench-run.ts'
import { clockStepMs } from './clock.ts'
import { Gathered } from './gathered.ts'
import { interruptible } from './interruption.ts'
import { describeCarillon, describeMachine } from './machine.ts'
import type { Peer } from './measure.ts'
import type { Options } from './options.ts'
import { versionOf } from './peers/package-version.ts'
import { PLANS, WORK_NAMES } from './plan.ts'
import type { Progress } from './progress.ts'
import { describeRedis } from './redis-facts.ts'
import { startRedis } from './redis.ts'
import { RESULTS_VERSION, type Figure, type Results } from './results.ts'
import { runWorks, type Works } from './run-works.ts'
import { UnexpectedErrors } from './unexpected-errors.ts'

interface Order {
  readonly options: Options
  /** The command as the page shows it. */
  readonly command: string
  readonly works: Works
  readonly peers: readonly Peer[]
  readonly progress: Progress
}

/**
 * Starts the servers, measures, and stops the servers, even if the run is interrupted or its time is up.
 * @throws Interrupted after everything has stopped
 */
export function runBench(order: Order): Promise<Omit<Results, 'checks'>> {
  const { options, progress } = order
  const note = (text: string): void => {
    progress.note(text)
  }
  return interruptible({ limitMs: PLANS[options.plan].limitMs, note }, (signal) => measureAll(order, signal))
}

async function measureAll(order: Order, signal: AbortSignal): Promise<Omit<Results, 'checks'>> {
  const { options, progress, peers } = order
  const plan = PLANS[options.plan]
  const startedAt = new Date()
  const gathered = new Gathered()
  using unexpectedErrors = new UnexpectedErrors()
  progress.note('starting Postgres and Redis')
  await using postgres = await startBenchPostgres({ isDurable: plan.isDurable })
  await using redis = await startRedis()
  if (redis === undefined) progress.note('no Redis could be had: what needs it will be recorded as failed')
  const { patienceMs, atOnce } = plan
  await using run = new BenchRun({ postgres, redis, gathered, progress, signal, patienceMs, atOnce, clockStepMs })
  unexpectedErrors.reportTo((error) => {
    run.unexpectedFailure(error)
  })
  const facts = await describeServers(postgres, redis?.url)
  const works = await runWorks({
    run,
    works: order.works,
    names: options.works,
    plan,
    rounds: options.rounds ?? plan.rounds,
    peers,
    progress,
    signal,
  })
  return {
    version: RESULTS_VERSION,
    plan: plan.name,
    command: order.command,
    startedAt: startedAt.toISOString(),
    seconds: Math.round(progress.seconds),
    isComplete: !signal.aborted,
    machine: describeMachine(),
    versions: { ...facts.versions, ...Object.fromEntries(peers.map(({ name, version }) => [name, version])) },
    durability: facts.durability,
    works,
    subjects: peers.map(({ name, version, leaves, setUp }) => ({ name, version, leaves, setUp })),
    figures: gathered.figures.toSorted((a, b) => orderOf(a) - orderOf(b)),
    failures: gathered.failures,
    plans: gathered.plans,
  }
}

/** Works may have run concurrently, so their figures are in no order. */
function orderOf({ work }: Figure): number {
  return WORK_NAMES.findIndex((name) => name === work)
}

async function describeServers(
  postgres: Awaited<ReturnType<typeof startBenchPostgres>>,
  redisUrl: string | undefined,
): Promise<{ versions: Record<string, string>; durability: Record<string, string> }> {
  const redis = redisUrl === undefined ? undefined : await describeRedis(redisUrl)
  const named = (system: string, settings: Record<string, string>): Record<string, string> =>
    Object.fromEntries(Object.entries(settings).map(([name, value]) => [`${system}, ${name}`, value]))
  return {
    versions: {
      Carillon: describeCarillon(),
      Node: process.versions.node,
      Postgres: await postgres.version(),
      Redis: redis?.version ?? 'none: it could not be had',
      undici: versionOf('undici'),
    },
    durability: { ...named('Postgres', await postgres.settings()), ...named('Redis', redis?.settings ?? {}) },
  }
}
