import type { Policy, RetryPolicy, RunTrigger } from '@carillon/api'
import type { z } from 'zod'

import type { Tx } from '../db/database.ts'
import type { Problem } from '../kernel/errors.ts'
import type { Json } from '../kernel/json.ts'
import type { Scope } from '../kernel/scope.ts'

/** The limits of a tenant's targets, in addition to those of the installation. */
export interface TargetLimits {
  /** Host patterns; null: only the installation's apply. */
  readonly allowedHosts: readonly string[] | null
}

/** The grant that a run acts by, as its target sees it. */
export interface TargetGrant {
  readonly id: string
  /** The subject that the run acts for. */
  readonly subject: string
  /** The account that pays. */
  readonly billingAccountId: string | null
}

/** The run that an attempt belongs to. The same on every attempt (I5). */
export interface RunIdentity extends Scope {
  readonly scheduleId: string
  /** Made when the run began. */
  readonly runId: string
  /** The nominal slot, epoch milliseconds. */
  readonly scheduledFor: number
  readonly trigger: RunTrigger
  /** Of the schedule, as it was when the run began. */
  readonly revision: number
}

/** A run that is about to be attempted: in BEGIN for the first time, in TAKE again. */
export interface Candidate<Spec> extends RunIdentity {
  /** Counts from 1. */
  readonly attempt: number
  readonly spec: Spec
  readonly grant: TargetGrant
}

/** What becomes of a candidate. */
export type Admission =
  /** The attempt starts when the transaction commits. What `admit` wrote for it is committed with it. */
  | { readonly kind: 'admitted' }
  /** The attempt does not start. A run that was never tried is skipped for this reason; one that was tried has failed for it. */
  | {
      readonly kind: 'refused'
      /** One of the reasons that the module of the kind declares. */
      readonly reason: string
      /** Whether it counts toward auto-pause, as a revoked grant does. @default false */
      readonly isFailure?: boolean
      readonly schedule?: ScheduleEffect
    }
  /** Not now. The run waits until then, no attempt is charged, and `admit` is asked again. At most a day ahead each time. */
  | { readonly kind: 'deferred'; readonly until: number; readonly why: string }

/** What a hook does to a schedule, in the transaction of the hook. */
export type ScheduleEffect =
  /** The schedule has no further slot. Its open runs go on. */
  { readonly kind: 'complete' } | { readonly kind: 'pause'; readonly reason: string }

/** One attempt at one run, as a target sees it. */
export interface TargetContext<Spec> extends RunIdentity {
  /** Counts from 1. */
  readonly attempt: number
  /** `sched:<scheduleId>:<slot unix ms>`: the same on every attempt, distinct for every slot (I5). */
  readonly idempotencyKey: string
  /** What the revision that began the run says, whatever was edited since (I5). */
  readonly spec: Spec
  /** The grant by which the run acts (I8). The worker checked it a moment ago; an executor on another system checks it again there. */
  readonly grant: TargetGrant
  readonly limits: TargetLimits
  /**
   * Appends a line to the run's transcript. Returns at once and never throws: lines are buffered, and all of them are written before the
   * attempt is settled. Past the cap of the run one line says so, and further lines are dropped.
   */
  readonly record: (entry: TranscriptEntry) => void
  /** Moves the time limit of the attempt to this many milliseconds from now, at most to `timeoutMaxMs` after its start. */
  readonly extend: (ms: number) => void
  /**
   * Where and with which token the called side completes this run, for an outcome `accepted`. The token is the same on every attempt; the
   * URL names the attempt.
   */
  readonly callback: () => Callback
}

/** What a run said while it ran: a text, a tool call, a step. */
export type TranscriptEntry = { readonly kind: string } & Readonly<Record<string, Json>>

export interface Callback {
  readonly url: string
  readonly token: string
}

/** Why an attempt did not succeed. */
export interface AttemptError {
  /** A short stable word: `http_status`, `timeout`, `network`. */
  readonly code: string
  readonly message: string
  /** What a program may want to know: an HTTP status, the head of a body. */
  readonly detail?: Json
}

/**
 * The result of an attempt. A target returns failures as values; an exception is a fault of the target itself. `private` goes to the
 * hook `settled` of the same kind and nowhere else.
 */
export type Outcome = { readonly private?: unknown } & (
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
   * Somebody else does the work. The run is detached: no worker holds it. It ends when it is completed, or when `deadlineMs` have passed
   * without a heartbeat.
   */
  | {
      readonly kind: 'accepted'
      readonly deadlineMs: number
      /** Shown to people: the id of a ticket, or of the run of an agent. */
      readonly reference?: string
    }
  /** Not now: the run is tried again then, and no attempt is charged. At most a day ahead each time. */
  | { readonly kind: 'deferred'; readonly until: number; readonly why: string }
)

/** How an attempt ended. Its worker, a rescuer, a completion or a deadline ends it. */
export type EndingKind = Outcome['kind'] | 'refused' | 'handed_back' | 'lost' | 'timed_out'

/** What `settled` is called with: an attempt whose fence held (I12). Each ending is passed once. */
export interface AttemptEnd<Spec> extends RunIdentity {
  readonly attempt: number
  readonly ending: EndingKind
  /** What the run is in from now on. `detached`, `pending` and `retrying` are not the end of it. */
  readonly state: 'pending' | 'retrying' | 'detached' | 'succeeded' | 'failed' | 'cancelled' | 'skipped'
  /** Null if the stored spec can no longer be read. */
  readonly spec: Spec | null
  readonly result: Json
  readonly error: AttemptError | null
  /** What `dispatch` returned as `private`. Undefined if the attempt was lost, handed back, or completed from elsewhere. */
  readonly private: unknown
}

/** A schedule that is about to be written, or that a preview asks about. */
export interface ScheduleDraft<Spec> {
  readonly ownerSubject: string
  readonly spec: Spec
  readonly policy: Readonly<Policy>
}

/** A draft in its project, for checks that ask the database. */
export interface PlacedDraft<Spec> extends ScheduleDraft<Spec>, Scope {
  /** The grant that the schedule names; null: the create makes one. */
  readonly grantId: string | null
}

/** What a worker that stops does with an attempt of this kind. */
export type DrainRule =
  /** Lets it go on for this long, then fires its signal and hands the run back: no attempt is charged. */
  | { readonly kind: 'hand_back'; readonly graceMs: number }
  /** Lets it end, up to the worker's own limit. For work that must not be repeated. */
  | { readonly kind: 'wait' }

/**
 * The defaults of a schedule's policy that a kind of target may set. It always sets those of retries. A run limit is never a default,
 * because a caller could not remove it.
 */
export type TargetPolicy = Partial<Readonly<Omit<Policy, 'runLimit'>>> & { readonly retry: RetryPolicy }

/**
 * What a schedule can call. One object per kind for the whole process, so it keeps its own connections. A target does not know whether
 * the pipeline loop, a retry or a person called it.
 *
 * A kind with `admit` or `settled` has hooks: its runs begin, are taken, settled and rescued in transactions apart from those of other
 * kinds, and only by workers that serve the kind. A kind without hooks runs through the same statements as if they did not exist.
 */
export interface Target<Spec extends { readonly kind: string } = { readonly kind: string }> {
  readonly kind: Spec['kind']
  /** The name of the kind in lists and forms. @default the kind */
  readonly title?: string
  /** A target of this kind, for documents and forms. @default none */
  readonly example?: Spec
  /** How its scopes look, the varying part in angle brackets: `http:dispatch:<host>`. For documents and forms. @default none */
  readonly scopePattern?: string
  /** Checks the whole `target` object of a schedule, `kind` included. Carillon stores the result, with what it stripped or filled in. */
  readonly schema: z.ZodType<Spec>
  /** What the policy of a schedule falls back to, field by field. */
  readonly policy: TargetPolicy
  /**
   * How long the called side remembers an idempotency key; undefined if it makes no such promise. All retries of a run must end
   * within this time, or the called side would take a late attempt for a new call.
   */
  readonly idempotencyRetentionSeconds?: number
  /** @default hands back after the grace period of the worker */
  readonly drain?: DrainRule
  /**
   * The scope that a grant must have for this spec, as `<kind>:<verb>:<object>`: `http:dispatch:example.com`. Called on create and edit,
   * and again before each attempt (I8).
   */
  requiredScope(spec: Spec): string
  /** The names of the secrets that a spec refers to, with their paths in it. A create or edit requires that they exist. */
  secretRefs?(spec: Spec): readonly { readonly path: string; readonly name: string }[]
  /** How long an attempt may take. After this time the worker aborts it and records it as failed. */
  timeoutMs(spec: Spec): number
  /** How far `extend` may move the time limit, from the start of the attempt. @default `timeoutMs` */
  timeoutMaxMs?(spec: Spec): number
  /** How far a heartbeat of the called side moves the deadline of a detached run. @default the kind takes no heartbeats */
  deadlineMs?(spec: Spec): number
  /** False: a run whose deadline passes has failed for good. Otherwise the retry policy decides. @default true */
  isRetriedAtDeadline?(spec: Spec): boolean
  /** What is wrong with a schedule beyond the shape of its target, such as a host that may not be called. Called on create and edit. */
  check?(draft: ScheduleDraft<Spec>, limits: TargetLimits): readonly Problem[]
  /** The same with the database, in the transaction that writes the schedule: a graph that does not exist, an account without credit. */
  checkIn?(tx: Tx, draft: PlacedDraft<Spec>): Promise<readonly Problem[]>
  /** What a preview shows besides the slots, such as a forecast of the cost. Writes nothing. */
  preview?(tx: Tx, draft: PlacedDraft<Spec>, slots: readonly number[]): Promise<Json>
  /**
   * Decides about attempts that are about to start, in the transaction that starts them. One call per batch; the answers are in the order
   * of the candidates. May write: a reservation, a turn. Runs under a savepoint: if it throws, the attempts of the batch are settled as
   * failed with `admit_failed` and retried by their policies. It may be called again for the same attempt, if the transaction is repeated.
   */
  admit?(tx: Tx, candidates: readonly Candidate<Spec>[]): Promise<readonly Admission[]>
  /** Makes one attempt. Must end soon after the signal fires: the worker does not wait for it any longer. */
  dispatch(context: TargetContext<Spec>, signal: AbortSignal): Promise<Outcome>
  /**
   * Writes what follows from attempts that ended, in the transaction that settles them (I4), before the runs are written. Called for every
   * ending of every attempt, so that whatever `admit` reserved can be released; also for an attempt whose `admit` threw, where nothing is
   * reserved. If it throws, the batch is split until the run at fault is alone. That run is tried for a minute, then settled as failed
   * with `settle_failed`, and `settled` is called once more; what it throws then is reported and ignored.
   * @returns effects on schedules of this batch, by schedule id
   */
  settled?(tx: Tx, ends: readonly AttemptEnd<Spec>[]): Promise<ReadonlyMap<string, ScheduleEffect> | void>
  /** Releases what the target holds, such as connections. The worker calls it when it stops, after its runs have ended. */
  close?(): Promise<void>
}
