import { foundText, messageOf, RUN_REASONS } from '@carillon/api'

import type { Tx } from '../db/database.ts'
import { isAborted, isUsable, LentTransaction, withSavepoint } from '../db/transact.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Events } from '../kernel/events.ts'
import type { HeldRun, RunFence } from '../ledger/held-run.ts'
import type { Admission, AttemptEnd, Candidate, ScheduleEffect, Target } from '../ports/target.ts'
import type { Settlement } from './store/settle.ts'

/** How long one call of a hook may take. Meanwhile it holds a connection and the locks of its batch. */
const HOOK_LIMIT_MS = 10_000
/** How long each statement of a batch with hooks waits for a lock, so that a row that a module holds does not hold up the batch. */
export const HOOK_LOCK_LIMIT_MS = 2000
/** For how long a run whose `settled` throws is tried. After that it is settled as failed. */
const GIVE_UP_AFTER_MS = 60_000

/** What `admit` decided about a candidate; `failed`: it threw, so the attempt is settled as failed. */
export type HookAdmission = Admission | { readonly kind: 'failed'; readonly message: string }

/** The hook `settled` of a kind threw, or took too long: the batch may succeed without one of its runs. */
export class HookError extends Error {
  override readonly name = 'HookError'
}

export interface HooksDeps {
  readonly clock: Clock
  readonly events: Events
  readonly targets: ReadonlyMap<string, Target>
  /** The reasons for which `admit` may refuse a run: those of the database. @default core's own */
  readonly reasons?: ReadonlySet<string>
}

/** What the ends of attempts do to schedules besides, by schedule id. */
export type ScheduleEffects = ReadonlyMap<string, ScheduleEffect>

const NO_EFFECTS: ScheduleEffects = new Map()

/**
 * The hooks of the kinds that this worker serves. A hook is code of a module in a transaction of the pipeline: it gets a limited time and a
 * transaction that is taken back, and what it throws concerns its own batch only.
 */
export class Hooks {
  readonly #deps: HooksDeps
  /** The kinds whose runs have transactions apart from those of other kinds. */
  readonly kinds: ReadonlySet<string>
  /** When `settled` first threw for a run that was alone in its batch, by run id and token. By the monotonic clock. */
  readonly #failingSince = new Map<string, number>()

  constructor(deps: HooksDeps) {
    this.#deps = deps
    this.kinds = new Set([...deps.targets].flatMap(([kind, target]) => (hasHooks(target) ? [kind] : [])))
  }

  /**
   * Asks `admit` about runs of one kind that are about to be attempted. Never throws because of the hook: if it throws, all of them have
   * failed to be admitted.
   * @throws if the whole transaction must run again, or its connection is lost
   */
  async admit(tx: Tx, kind: string, runs: readonly CandidateRun[]): Promise<readonly HookAdmission[]> {
    const target = this.#deps.targets.get(kind)
    if (target?.admit === undefined || runs.length === 0) return runs.map(() => ({ kind: 'admitted' }))
    const readable = runs.map((run) => ({ run, spec: specOf(target, run.target) }))
    // A run whose spec cannot be read is attempted, and fails there with the reason.
    const candidates = readable.flatMap(({ run, spec }) => (spec === null ? [] : [candidateOf(run, spec)]))
    if (candidates.length === 0) return runs.map(() => ({ kind: 'admitted' }))
    try {
      const answers = await withSavepoint(tx, (within) =>
        this.#limited(within, (lent) => target.admit?.(lent, candidates) ?? Promise.resolve([])),
      )
      const admissions = checkedAdmissions(answers, candidates.length, this.#deps.reasons ?? CORE_REASONS)
      let next = 0
      return readable.map(({ spec }) => (spec === null ? ADMITTED : (admissions[next++] ?? ADMITTED)))
    } catch (error) {
      if (await isOfTransaction(tx, error)) throw error
      this.#report(kind, 'admit', error)
      const message = `the hook admit of ${kind} failed: ${messageOf(error)}`
      return readable.map(({ spec }) => (spec === null ? ADMITTED : { kind: 'failed', message }))
    }
  }

  /**
   * Calls `settled` with the ends of attempts of one kind, whose fences hold.
   * @throws HookError if the hook failed
   */
  async settled(tx: Tx, kind: string, settlements: readonly Settlement[]): Promise<ScheduleEffects> {
    const target = this.#deps.targets.get(kind)
    if (target?.settled === undefined || settlements.length === 0) return NO_EFFECTS
    const ends = settlements.map((settlement) => endOf(target, settlement))
    try {
      const effects = await this.#limited(tx, (lent) => target.settled?.(lent, ends) ?? Promise.resolve())
      return checkedEffects(effects, ends)
    } catch (error) {
      if (await isOfTransaction(tx, error)) throw error
      throw new HookError(`the hook settled of ${kind} failed: ${messageOf(error)}`, { cause: error })
    }
  }

  /** Calls `settled` for a run that was given up. What it throws is reported and ignored. */
  async settledAtLast(tx: Tx, kind: string, settlement: Settlement): Promise<ScheduleEffects> {
    try {
      return await withSavepoint(tx, (within) => this.settled(within, kind, [settlement]))
    } catch (error) {
      if (await isOfTransaction(tx, error)) throw error
      this.#report(kind, 'settled', error)
      return NO_EFFECTS
    }
  }

  /** True once `settled` has thrown for this run alone for so long that the run must end without it. */
  isGivenUp(run: RunFence): boolean {
    const since = this.#failingSince.get(nameOf(run))
    return since !== undefined && this.#deps.clock.monotonicMs() - since >= GIVE_UP_AFTER_MS
  }

  noteFailed(run: RunFence): void {
    const name = nameOf(run)
    if (!this.#failingSince.has(name)) this.#failingSince.set(name, this.#deps.clock.monotonicMs())
  }

  noteSettled(runs: readonly RunFence[]): void {
    if (this.#failingSince.size === 0) return
    for (const run of runs) this.#failingSince.delete(nameOf(run))
  }

  async #limited<Result>(tx: Tx, hook: (lent: Tx) => Promise<Result>): Promise<Result> {
    const lent = new LentTransaction(tx)
    const late = Promise.withResolvers<never>()
    const stopTimer = this.#deps.clock.after(HOOK_LIMIT_MS, () => {
      lent.close()
      late.reject(new Error(`expected an end within ${HOOK_LIMIT_MS / 1000} s, got none`))
    })
    try {
      return await Promise.race([hook(lent), late.promise])
    } finally {
      stopTimer()
      lent.close()
    }
  }

  #report(kind: string, hook: 'admit' | 'settled', error: unknown): void {
    this.#deps.events.emit('service.failed', { service: `hook ${hook} of ${kind}`, error })
  }
}

/** A run that is about to be attempted. */
export type CandidateRun = Omit<HeldRun, 'workerId' | 'token' | 'startedAt' | 'policy' | 'ownerSubject'>

const ADMITTED: HookAdmission = { kind: 'admitted' }
const CORE_REASONS: ReadonlySet<string> = new Set(RUN_REASONS)

function hasHooks(target: Target): boolean {
  return target.admit !== undefined || target.settled !== undefined
}

/** True if the error belongs to the transaction, not to the hook: Postgres aborted it because of others, or the connection is lost. */
async function isOfTransaction(tx: Tx, error: unknown): Promise<boolean> {
  return isAborted(error) || !(await isUsable(tx))
}

function candidateOf(run: CandidateRun, spec: { readonly kind: string }): Candidate<{ readonly kind: string }> {
  const { tenantId, projectId, scheduleId, runId, scheduledFor, trigger, revision, attempt, grant } = run
  const { id, subject, billingAccountId } = grant
  const identity = { tenantId, projectId, scheduleId, runId, scheduledFor, trigger, revision }
  return { ...identity, attempt, spec, grant: { id, subject, billingAccountId } }
}

function endOf(
  target: Target,
  { run, ending, state, result, error, private: own }: Settlement,
): AttemptEnd<{ readonly kind: string }> {
  const { tenantId, projectId, scheduleId, runId, scheduledFor, trigger, revision, attempt } = run
  return {
    tenantId,
    projectId,
    scheduleId,
    runId,
    scheduledFor,
    trigger,
    revision,
    attempt,
    ending,
    state,
    spec: specOf(target, run.target),
    result: result === null ? null : (JSON.parse(result) as AttemptEnd<unknown>['result']),
    error: error === null ? null : (JSON.parse(error) as AttemptEnd<unknown>['error']),
    private: own,
  }
}

/** The stored spec as its target reads it; null if it can no longer be read. */
function specOf(target: Target, stored: unknown): { readonly kind: string } | null {
  try {
    const spec = target.schema.safeParse(stored)
    return spec.success ? spec.data : null
  } catch {
    return null
  }
}

const ADMISSION_KINDS: readonly unknown[] = ['admitted', 'refused', 'deferred'] satisfies Admission['kind'][]

/** Checked at run time: a module may be plain JavaScript. */
function checkedAdmissions(answers: unknown, count: number, reasons: ReadonlySet<string>): readonly Admission[] {
  if (!Array.isArray(answers) || answers.length !== count) {
    throw new TypeError(
      `expected ${count} admissions, one for each candidate, got ${Array.isArray(answers) ? answers.length : 'no list'}`,
    )
  }
  for (const answer of answers as readonly Partial<Admission>[]) {
    if (!ADMISSION_KINDS.includes(answer?.kind)) throw new TypeError('expected an admission, got something else')
    if (answer.kind === 'refused' && !reasons.has(answer.reason ?? '')) {
      throw new TypeError(`expected a reason that the module declares, got ${foundText(answer.reason)}`)
    }
    if (answer.kind === 'deferred' && !Number.isFinite(answer.until)) {
      throw new TypeError('expected an instant, got none')
    }
  }
  return answers as readonly Admission[]
}

/** A hook may change the schedules of its own batch only: no others are locked. */
function checkedEffects(
  effects: ScheduleEffects | void,
  ends: readonly AttemptEnd<{ readonly kind: string }>[],
): ScheduleEffects {
  if (effects === undefined) return NO_EFFECTS
  const known = new Set(ends.map(({ scheduleId }) => scheduleId))
  const strange = [...effects.keys()].find((id) => !known.has(id))
  if (strange !== undefined) throw new TypeError(`expected effects on schedules of the batch, got one on ${strange}`)
  return effects
}

function nameOf({ runId, token }: RunFence): string {
  return `${runId}:${token}`
}
