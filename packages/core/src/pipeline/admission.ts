import type { Tx } from '../db/database.ts'
import type { NewLine } from '../db/new-lines.ts'
import { countSuperseded } from '../policy/overlap.ts'
import { AUTO_PAUSE_REASON, shouldAutoPause } from '../policy/schedule-policy.ts'
import type { Admission, ScheduleEffect } from '../ports/target.ts'
import type { BeginPlan } from './begin-plan.ts'
import type { CandidateRun, HookAdmission, Hooks, ScheduleEffects } from './hooks.ts'
import type { Ending } from './settlement.ts'

/** Plans of a batch after its kind was asked. */
export interface AdmittedPlans {
  readonly plans: readonly BeginPlan[]
  /** How the attempts of runs ended that begin although `admit` failed, by run id. */
  readonly endings: ReadonlyMap<string, Ending>
  /** What `admit` asked to do to schedules. */
  readonly asked: ScheduleEffects
}

/** Asks the kind of a batch about the runs that would start now. */
export async function admitPlans(
  tx: Tx,
  hooks: Hooks,
  kind: string,
  plans: readonly BeginPlan[],
): Promise<AdmittedPlans> {
  const endings = new Map<string, Ending>()
  const asked = new Map<string, ScheduleEffect>()
  const candidates = plans.flatMap((plan) => candidateOf(plan) ?? [])
  if (candidates.length === 0) return { plans, endings, asked }
  const admissions = await hooks.admit(tx, kind, candidates)
  const byRun = new Map(candidates.map(({ runId }, index) => [runId, admissions[index]]))
  for (const { runId, scheduleId } of candidates) {
    const admission = byRun.get(runId)
    const ending = admission && endingOfFailure(admission)
    if (ending !== undefined) endings.set(runId, ending)
    if (admission?.kind === 'refused' && admission.schedule !== undefined) asked.set(scheduleId, admission.schedule)
  }
  return { plans: plans.map((plan) => admittedPlan(plan, byRun)), endings, asked }
}

/** How an attempt ends that its kind did not admit in TAKE; undefined: it was admitted. */
export function endingOfAdmission(admission: HookAdmission): Ending | undefined {
  switch (admission.kind) {
    case 'admitted':
      return undefined
    case 'refused': {
      const { reason, isFailure = false, schedule } = admission
      return { kind: 'refused', reason, isFailure, ...(schedule === undefined ? {} : { effect: schedule }) }
    }
    case 'deferred':
      return { kind: 'deferred', until: admission.until, why: admission.why }
    case 'failed':
      return endingOfFailure(admission)
  }
}

/** A run whose `admit` threw is settled as failed, by the same path as any other failure. */
function endingOfFailure(admission: HookAdmission): Ending | undefined {
  if (admission.kind !== 'failed') return undefined
  return { kind: 'failed', error: { code: 'admit_failed', message: admission.message }, retryable: true }
}

function admittedPlan(plan: BeginPlan, byRun: ReadonlyMap<string, HookAdmission | undefined>): BeginPlan {
  const started = plan.lines.find(isStarting)
  const admission = started && byRun.get(started.id)
  if (admission?.kind === 'refused') return refusedPlan(plan, admission)
  return admission?.kind === 'deferred' ? deferredPlan(plan, admission) : plan
}

/** The slot does not run, so it ends and cancels none of the open runs. */
function refusedPlan(
  plan: BeginPlan,
  { reason, isFailure = false }: Extract<Admission, { readonly kind: 'refused' }>,
): BeginPlan {
  const { failed } = countSuperseded(plan.supersede)
  const consecutiveFailures = plan.consecutiveFailures - failed + (isFailure ? 1 : 0)
  const { autoPauseThreshold: threshold } = plan.schedule
  const isPaused = isFailure && plan.state === 'active' && shouldAutoPause({ threshold, consecutiveFailures })
  return {
    ...plan,
    lines: plan.lines.map((line) => (isStarting(line) ? { ...line, state: 'skipped', reason } : line)),
    supersede: [],
    cancel: [],
    consecutiveFailures,
    runCount: 0,
    failureCount: plan.failureCount - failed,
    isLastRun: false,
    ...(isPaused ? { state: 'paused', nextSlotAt: null, dueAt: null, pausedReason: AUTO_PAUSE_REASON } : {}),
  }
}

/** The slot has begun: it ends and is counted like one that runs. Its run waits until the instant that the kind named. */
function deferredPlan(plan: BeginPlan, { until }: Extract<Admission, { readonly kind: 'deferred' }>): BeginPlan {
  const waits = { for: 'deferred', targetKind: plan.schedule.targetKind, until } as const
  return { ...plan, lines: plan.lines.map((line) => (isStarting(line) ? { ...line, state: 'pending', waits } : line)) }
}

function isStarting({ state }: NewLine): boolean {
  return state === 'running'
}

function candidateOf({ schedule, lines }: BeginPlan): CandidateRun | undefined {
  const line = lines.find(isStarting)
  if (line === undefined) return undefined
  return {
    runId: line.id,
    scheduleId: schedule.id,
    scheduledFor: line.scheduledFor,
    tenantId: schedule.tenantId,
    projectId: schedule.projectId,
    revision: schedule.revision,
    targetKind: schedule.targetKind,
    trigger: 'schedule',
    attempt: 1,
    target: schedule.target,
    grant: schedule.grant,
  }
}
