import type { RetryPolicy, RunTrigger } from '@carillon/api'
import type { z } from 'zod'

import type { Problem } from '../kernel/errors.ts'
import type { Json } from '../kernel/json.ts'

/** The limits of a tenant's targets, in addition to those of the installation. */
export interface TargetLimits {
  /** Host patterns; null: only the installation's apply. */
  readonly allowedHosts: readonly string[] | null
}

/** One attempt at one run, as a target sees it. */
export interface TargetContext<Spec> {
  readonly tenantId: string
  readonly projectId: string
  readonly scheduleId: string
  /** Made when the run began; the same on every attempt (I5). */
  readonly runId: string
  /** The nominal slot, epoch milliseconds. */
  readonly scheduledFor: number
  /** Counts from 1. */
  readonly attempt: number
  readonly trigger: RunTrigger
  /** `sched:<scheduleId>:<slot unix ms>`: the same on every attempt, distinct for every slot (I5). */
  readonly idempotencyKey: string
  /** What the revision that began the run says, whatever was edited since (I5). */
  readonly spec: Spec
  /** The grant by which the run acts (I8). The worker checked it a moment ago; an executor on another system checks it again there. */
  readonly grant: TargetGrant
  readonly limits: TargetLimits
}

/** The grant that a run acts by, as its target sees it. */
export interface TargetGrant {
  readonly id: string
  /** The subject that the run acts for. */
  readonly subject: string
  /** The account that pays. */
  readonly billingAccountId: string | null
}

/** Why an attempt did not succeed. */
export interface AttemptError {
  /** A short stable word: `http_status`, `timeout`, `network`. */
  readonly code: string
  readonly message: string
  /** What a program may want to know: an HTTP status, the head of a body. */
  readonly detail?: Json
}

/** The result of an attempt. A target returns failures as values; an exception is a fault of the target itself. */
export type Outcome =
  | { readonly kind: 'succeeded'; readonly result: Json }
  | {
      readonly kind: 'failed'
      readonly error: AttemptError
      /** Whether another attempt could succeed. */
      readonly retryable: boolean
      /** The next attempt waits at least this long, up to the cap of its retry policy. */
      readonly retryAfterMs?: number
    }
  /** The signal fired and the target stopped. */
  | { readonly kind: 'cancelled' }
  /** The spec or the answer is malformed. A retry would not help. */
  | { readonly kind: 'malformed'; readonly error: AttemptError }

/**
 * What a schedule can call. One object per kind for the whole process, so it keeps its own connections.
 * A target does not know whether the pipeline loop, a retry or a person called it.
 */
export interface Target<Spec extends { readonly kind: string } = { readonly kind: string }> {
  readonly kind: Spec['kind']
  /** Checks the whole `target` object of a schedule, `kind` included. Carillon stores the result, with what it stripped or filled in. */
  readonly schema: z.ZodType<Spec>
  /** The defaults for the retry policy of schedules that call this target. */
  readonly retry: RetryPolicy
  /**
   * How long the called side remembers an idempotency key; undefined if it makes no such promise. All retries of a run must end
   * within this time, or the called side would take a late attempt for a new call.
   */
  readonly idempotencyRetentionSeconds?: number
  /**
   * The scope that a grant must have for this spec, as `<kind>:<verb>:<object>`: `http:dispatch:example.com`. Called on create and edit,
   * and again before each attempt (I8).
   */
  requiredScope(spec: Spec): string
  /** The names of the secrets that a spec refers to, with their paths in it. A create or edit requires that they exist. */
  secretRefs?(spec: Spec): readonly { readonly path: string; readonly name: string }[]
  /** How long an attempt may take. After this time the worker aborts it and records it as failed. */
  timeoutMs(spec: Spec): number
  /** What is wrong with a spec beyond its shape, such as a host that may not be called. Called on create and edit. */
  check?(spec: Spec, limits: TargetLimits): readonly Problem[]
  /** Makes one attempt. Must end soon after the signal fires: the worker does not wait for it any longer. */
  dispatch(context: TargetContext<Spec>, signal: AbortSignal): Promise<Outcome>
  /** Releases what the target holds, such as connections. The worker calls it when it stops, after its runs have ended. */
  close?(): Promise<void>
}
