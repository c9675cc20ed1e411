import type { z } from 'zod'

import type { Json } from './json.ts'
import type { RetryPolicy } from './policy/retry.ts'
import type { Problem } from './problem.ts'

/** What a tenant's targets are held to, beyond what the installation allows to all. */
export interface TargetLimits {
  /** Host patterns; null: no others than the installation's. */
  readonly allowedHosts: readonly string[] | null
}

/** One attempt at one run, as a target sees it. It says what to do and under which key, never who asked. */
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
  readonly trigger: 'schedule' | 'manual'
  /** `sched:<scheduleId>:<slot unix ms>`: the same on every attempt, distinct for every slot (I5). */
  readonly idempotencyKey: string
  /** What the revision that began the run says, whatever was edited since (I5). */
  readonly spec: Spec
  /** By what right (I8). It was checked a moment ago; an executor elsewhere checks it again there. */
  readonly grant: TargetGrant
  readonly limits: TargetLimits
}

/** The grant that a run acts by, as its target is told of it. */
export interface TargetGrant {
  readonly id: string
  /** In whose name. */
  readonly subject: string
  /** Who pays. */
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

/** What an attempt came to. A value, not an exception: what a target throws is a fault of the target itself. */
export type Outcome =
  | { readonly kind: 'succeeded'; readonly result: Json }
  | {
      readonly kind: 'failed'
      readonly error: AttemptError
      /** Whether another attempt could succeed. */
      readonly retryable: boolean
      /** How long the target asked to be left alone; the next attempt waits at least so long, within its policy's cap. */
      readonly retryAfterMs?: number
    }
  /** The signal fired and the work was left. */
  | { readonly kind: 'cancelled' }
  /** The spec or the target's answer cannot be made sense of; trying again would not help. */
  | { readonly kind: 'malformed'; readonly error: AttemptError }

/**
 * What a schedule can call. One object per kind for the whole process, so it keeps its own connections.
 * A target never learns whether a keeper, a retry or a person called it.
 */
export interface Target<Spec extends { readonly kind: string } = { readonly kind: string }> {
  readonly kind: Spec['kind']
  /** Of the whole `target` object of a schedule, `kind` included. What it strips or defaults is what is stored. */
  readonly schema: z.ZodType<Spec>
  /** What a schedule's policy falls back to. */
  readonly retry: RetryPolicy
  /**
   * For how long the called side remembers an idempotency key; undefined if it makes no such promise. The retries of one
   * run must end within it (E-51), or a late attempt would be taken for a new call.
   */
  readonly idempotencyRetentionSeconds?: number
  /**
   * What a grant must carry for this spec, as `<kind>:<verb>:<object>`: `http:dispatch:example.com`. Asked on create and edit,
   * and again before each attempt (I8).
   */
  requiredScope(spec: Spec): string
  /** The names of the secrets that a spec refers to. They must be there on create and edit. */
  secretRefs?(spec: Spec): readonly { readonly path: string; readonly name: string }[]
  /** After which an attempt is cut and recorded as failed. */
  timeoutMs(spec: Spec): number
  /** What is wrong with a spec beyond its shape, such as a host that may not be called. Asked on create and edit. */
  check?(spec: Spec, limits: TargetLimits): readonly Problem[]
  /** Must end soon after the signal fires; if it does not, its outcome is no longer waited for. */
  dispatch(context: TargetContext<Spec>, signal: AbortSignal): Promise<Outcome>
  /** Lets go of what it holds, once no attempt is under way. */
  close?(): Promise<void>
}
