import type { Outcome, ScheduleDraft, Target, TargetContext, TargetLimits } from '@carillon/core'

import { createHttpTarget, type HttpSpec, type HttpTargetOptions } from '../src/index.ts'

const SCHEDULE_ID = '01980000-0000-7000-8000-0000000000aa'
export const RUN_ID = '01980000-0000-7000-8000-0123456789ab'
/** The limits of a tenant without a host list of its own. */
export const NO_LIMITS: TargetLimits = { allowedHosts: null }
const POLICY: ScheduleDraft<HttpSpec>['policy'] = {
  overlap: 'forbid',
  missed: 'skip',
  startingDeadlineSeconds: 300,
  retry: { maxAttempts: 1, baseSeconds: 1, capSeconds: 1 },
  autoPauseThreshold: 10,
  spreadSeconds: 0,
}
export const SLOT = Date.UTC(2026, 11, 24, 18, 0, 0, 7)

/** The target under test. It is closed when the test disposes it. */
export function httpTarget(options: Partial<HttpTargetOptions> = {}): Target<HttpSpec> & AsyncDisposable {
  const target = createHttpTarget({ allowedHosts: ['127.0.0.1'], ...options })
  return Object.assign(target, {
    [Symbol.asyncDispose]: async (): Promise<void> => {
      await target.close?.()
    },
  })
}

/** One attempt at one slot. Core stores the spec as the schema returns it, so the input passes through the schema. */
export function attemptAt(
  input: Record<string, unknown>,
  overrides: Partial<TargetContext<HttpSpec>> = {},
): TargetContext<HttpSpec> {
  const scheduleId = overrides.scheduleId ?? SCHEDULE_ID
  const scheduledFor = overrides.scheduledFor ?? SLOT
  return {
    tenantId: 'default',
    projectId: 'default',
    scheduleId,
    runId: RUN_ID,
    scheduledFor,
    attempt: 1,
    trigger: 'schedule',
    revision: 1,
    idempotencyKey: `sched:${scheduleId}:${scheduledFor}`,
    spec: createHttpTarget({ allowedHosts: [] }).schema.parse({ kind: 'http', ...input }),
    grant: { id: '01980000-0000-7000-8000-0000000000cc', subject: 'user:alice', billingAccountId: null },
    limits: NO_LIMITS,
    record: () => undefined,
    extend: () => undefined,
    callback: () => ({
      url: `http://127.0.0.1:7400/api/v1/runs/${RUN_ID}/complete?attempt=1`,
      token: 'the-token-of-the-run',
    }),
    ...overrides,
  }
}

/** The schedule of such an attempt, as it is checked when it is created. */
export function draftOf(input: Record<string, unknown>): ScheduleDraft<HttpSpec> {
  const { spec } = attemptAt(input)
  return { ownerSubject: 'user:alice', spec, policy: POLICY }
}

/** Dispatches an attempt that is never cancelled. */
export function dispatchTo(
  target: Target<HttpSpec>,
  input: Record<string, unknown>,
  overrides: Partial<TargetContext<HttpSpec>> = {},
): Promise<Outcome> {
  return target.dispatch(attemptAt(input, overrides), new AbortController().signal)
}
