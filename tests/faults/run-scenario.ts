import { runAudit, type AuditResult } from './audit.ts'
import { CrashablePostgres } from './crashable-postgres.ts'
import { FaultPlan } from './fault-plan.ts'
import { readLedger } from './ledger.ts'
import type { FaultSettings, Inflicted, Rig, Scenario } from './scenario.ts'
import { SeededRandom } from './seeded-random.ts'
import { recoveryTimes, TargetServer, type RecoveryTimes } from './target-server.ts'
import { judge, type Verdict } from './verdict.ts'
import { WaitWatch, type Wait } from './wait-watch.ts'
import { startWireProxy } from './wire-proxy.ts'
import { WorkerFleet, type SelfDeath } from './worker-fleet.ts'
import { Workload } from './workload.ts'

export interface ScenarioResult {
  readonly name: string
  readonly title: string
  readonly seconds: number
  readonly inflicted: Inflicted
  readonly deaths: readonly SelfDeath[]
  readonly startFailures: number
  readonly verdict: Verdict
  readonly longestWait: Wait
  /** The rows that were still open at the end. */
  readonly stuck: readonly Wait[]
  readonly audit: AuditResult
  readonly recovery: RecoveryTimes
  readonly apiChanges: number
  readonly apiRefusals: Readonly<Record<string, number>>
}

/** For how long slots keep coming due after the last fault. */
const CALM_MS = 5000
/** Longer than any allowed wait, so that a longer wait is noticed. */
const WATCH_LIMIT_MS = 40_000

/** Starts a new Postgres and workers, lets the scenario cause its faults, waits until no row is open, and judges the result. */
export async function runScenario(
  name: string,
  scenario: Scenario,
  settings: FaultSettings,
  say: Rig['say'],
): Promise<ScenarioResult> {
  const start = performance.now()
  const random = new SeededRandom(settings.seed)
  await using postgres = await CrashablePostgres.start()
  await using target = await TargetServer.start()
  await using workload = new Workload(postgres.url, { target, random })
  const plan = scenario.planOf?.(random) ?? new FaultPlan(noFaults(random))
  await using proxy = await startWireProxy(postgres.url, { plan, random })
  const databaseUrl = scenario.planOf === undefined ? postgres.url : proxy.url
  await using fleet = new WorkerFleet({ databaseUrl, random })
  await fleet.start(scenario.workers)
  await workload.createAll()
  workload.startChanging()
  const inflicted = await scenario.inflict({ postgres, fleet, workload, random, settings, say }, plan)
  await workload.stopChanging()
  say('the faults are over, things settle')
  const watch = new WaitWatch(workload.pool, inflicted.lastFaultAt)
  await watch.whileAnyWaits(CALM_MS, WATCH_LIMIT_MS)
  await workload.pauseAll()
  await watch.untilNothingIsOpen(WATCH_LIMIT_MS)
  // The ledger is read before the audit, which writes lines for lost slots.
  const verdict = judge(await readLedger(workload.pool), target.calls)
  const audit = await runAudit(workload.pool, workload.scheduler)
  await fleet.stop()
  return {
    name,
    title: scenario.title,
    seconds: (performance.now() - start) / 1000,
    inflicted,
    deaths: fleet.deaths,
    startFailures: fleet.startFailures,
    verdict,
    longestWait: watch.longest,
    stuck: watch.waiting,
    audit,
    recovery: recoveryTimes(target.calls),
    apiChanges: workload.changes,
    apiRefusals: Object.fromEntries(workload.refusals),
  }
}

const noFaults = (random: SeededRandom) => ({
  moments: [],
  gapMs: 0,
  openMax: 0,
  random,
  now: Date.now,
})
