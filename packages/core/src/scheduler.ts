import { auditedUntil, findings, latestAudit, requestAudit, unownedFindings } from './audit/audits.ts'
import type { Audit, Finding, FindingPage } from './audit/audits.ts'
import type { Events } from './kernel/events.ts'
import { type Caller, scopeOf } from './kernel/scope.ts'
import type { Run, Schedule, ScheduleChange } from './ledger/records.ts'
import { getRun, type RunWithAttempts } from './ledger/runs.ts'
import {
  checkedTranscriptPage,
  readTranscript,
  type TranscriptPage,
  type TranscriptPageOptions,
} from './ledger/transcripts.ts'
import { cancel } from './schedules/cancel.ts'
import { createContext, type SchedulerContext } from './schedules/context.ts'
import { createManyOnce, createOnce, type CreatedManyOnce, type CreatedOnce } from './schedules/create-once.ts'
import { CreateBatcher, createMany } from './schedules/create.ts'
import { deleteProject, deleteSchedule } from './schedules/delete.ts'
import { planCreate, planCreateMany, planEdit, type CreatePlan, type EditPlan } from './schedules/draft.ts'
import { edit } from './schedules/edit.ts'
import type { ScheduleEdit, ScheduleInput } from './schedules/input.ts'
import type {
  ChangeOptions,
  ListOptions,
  Preview,
  PreviewInput,
  RunPage,
  HistoryPage,
  SchedulerDeps,
  SchedulerOptions,
  ScheduleSlot,
  SlotRange,
} from './schedules/options.ts'
import { pause, resume } from './schedules/pause.ts'
import { get, history, list, listRunsOf } from './schedules/reads.ts'
import { runNow } from './schedules/run-now.ts'
import { restore, skip } from './schedules/skip.ts'
import { preview, slots } from './schedules/slots.ts'
import { listTargetKinds, type TargetKind } from './schedules/target-kinds.ts'

/**
 * The entry point for users of the library: it creates, changes and reads schedules, and requests runs. It never calls a target;
 * workers do (I7). Every change is one transaction that records its actor. Slots that came due before a change get their lines in
 * the same transaction; if an outage left too many of them, the rest of the lines is written soon after the commit.
 *
 * A method that refuses a call throws a CarillonError with a closed `code` and has written nothing. Any other error comes from the
 * database or the connection. If the connection broke during the commit, it is unknown whether the change was written.
 */
export class Scheduler {
  readonly events: Events
  readonly #context: SchedulerContext
  readonly #creates: CreateBatcher

  constructor(deps: SchedulerDeps, options: SchedulerOptions = {}) {
    this.#context = createContext(deps, options)
    this.#creates = new CreateBatcher(this.#context)
    this.events = this.#context.events
  }

  async create(caller: Caller, input: ScheduleInput): Promise<Schedule> {
    return this.#creates.create(caller, input)
  }

  /**
   * Creates at most once per caller and key within a day. A key is what the header `Idempotency-Key` may hold: up to 255 printable ASCII
   * characters, without spaces around them. A repeated request gets the same schedule, as it was when it was created. A different request
   * with the same key fails with `idempotency_key_reused`. While the first request is under way, every other request with its key fails with
   * `idempotency_in_flight`. A refused input does not use up its key.
   */
  async createOnce(caller: Caller, input: ScheduleInput, idempotencyKey: string): Promise<CreatedOnce> {
    return createOnce(this.#context, caller, input, idempotencyKey)
  }

  /**
   * Creates up to `CREATE_MANY_MAX` schedules in one transaction, all or none. For imports: it costs a fraction of single creates. The path
   * of a validation error starts with its input, as in `schedules[17].cadence.expression`.
   * @returns their ids, in the order of the inputs
   */
  async createMany(caller: Caller, inputs: readonly ScheduleInput[]): Promise<string[]> {
    return createMany(this.#context, caller, inputs)
  }

  /** `createMany` at most once per key, like `createOnce`. */
  async createManyOnce(
    caller: Caller,
    inputs: readonly ScheduleInput[],
    idempotencyKey: string,
  ): Promise<CreatedManyOnce> {
    return createManyOnce(this.#context, caller, inputs, idempotencyKey)
  }

  /** The schedule that a create would make. Throws what the create would throw. Writes nothing. */
  async planCreate(caller: Caller, input: ScheduleInput): Promise<CreatePlan> {
    return planCreate(this.#context, caller, input)
  }

  /** The schedules that `createMany` would make, in the order of the inputs. Throws what it would throw. Writes nothing. */
  async planCreateMany(caller: Caller, inputs: readonly ScheduleInput[]): Promise<CreatePlan[]> {
    return planCreateMany(this.#context, caller, inputs)
  }

  async get(caller: Caller, id: string): Promise<Schedule> {
    return get(this.#context, caller, id)
  }

  /** A page of the project's schedules, the most recently created first. */
  async list(caller: Caller, options: ListOptions = {}): Promise<Schedule[]> {
    return list(this.#context, caller, options)
  }

  /** Takes effect at once. A run that has begun continues with the revision under which it began (I5). */
  async edit(
    caller: Caller,
    id: string,
    change: ScheduleEdit,
    options: { readonly revision: number },
  ): Promise<Schedule> {
    return edit(this.#context, caller, id, change, options)
  }

  /**
   * What an edit would change in the coming slots; for a paused schedule, in the slots that would come due if it were resumed now.
   * Throws what `edit` would throw.
   */
  async planEdit(caller: Caller, id: string, change: ScheduleEdit, options: ChangeOptions = {}): Promise<EditPlan> {
    return planEdit(this.#context, caller, id, change, options)
  }

  /** No slot begins until `resume`. Runs that are under way or wait for a retry continue. Slots that wait for their turn are skipped. */
  async pause(caller: Caller, id: string, options: ChangeOptions & { readonly reason: string }): Promise<Schedule> {
    return pause(this.#context, caller, id, options)
  }

  /** Continues with the next future slot; slots that passed during the pause do not run. Resets the count of consecutive failures. */
  async resume(caller: Caller, id: string, options: ChangeOptions = {}): Promise<Schedule> {
    return resume(this.#context, caller, id, options)
  }

  /** Deletes a schedule for good. Cancels its waiting runs. Runs that are under way are left to finish. */
  async delete(caller: Caller, id: string, options: ChangeOptions = {}): Promise<void> {
    return deleteSchedule(this.#context, caller, id, options)
  }

  /** Deletes all schedules of the caller's project in one transaction. */
  async deleteProject(caller: Caller): Promise<{ readonly deleted: number }> {
    return deleteProject(this.#context, caller)
  }

  /** Skips one future slot. Its line will be `skipped` with the reason `excluded`. */
  async skip(caller: Caller, id: string, scheduledFor: number): Promise<Schedule> {
    return skip(this.#context, caller, id, scheduledFor)
  }

  /** Takes back a `skip`. */
  async restore(caller: Caller, id: string, scheduledFor: number): Promise<Schedule> {
    return restore(this.#context, caller, id, scheduledFor)
  }

  /**
   * The slots of a schedule's cadence, whatever the state of the schedule. Returns fewer than the limit if finding them would take
   * too long.
   */
  async slots(caller: Caller, id: string, range: SlotRange = {}): Promise<ScheduleSlot[]> {
    return slots(this.#context, caller, id, range)
  }

  /**
   * Requests a run at this instant, also while the schedule is paused. The next slot stays the same. Fails with `overlap` if, because
   * of the schedule's open runs, the overlap policy lets a further run neither start nor wait.
   */
  async runNow(caller: Caller, id: string): Promise<Run> {
    return runNow(this.#context, caller, id)
  }

  /** Cancels a waiting run at once. If the run is running, its worker fires the abort signal of the call to the target. */
  async cancel(caller: Caller, runId: string): Promise<Run> {
    return cancel(this.#context, caller, runId)
  }

  async getRun(caller: Caller, runId: string): Promise<RunWithAttempts> {
    return this.#context.transact(caller, (tx) => getRun(tx, { ...scopeOf(caller), id: runId }))
  }

  /** A page of what a run recorded while it ran, in order, across its attempts. */
  async transcript(caller: Caller, runId: string, options: TranscriptPageOptions = {}): Promise<TranscriptPage> {
    const page = checkedTranscriptPage(options)
    return this.#context.transact(caller, (tx) => readTranscript(tx, { ...scopeOf(caller), runId, ...page }))
  }

  /** A page of the schedule's runs, sorted by slot, the most recent slot first. */
  async listRuns(caller: Caller, scheduleId: string, options: RunPage = {}): Promise<Run[]> {
    return listRunsOf(this.#context, caller, scheduleId, options)
  }

  /** A page of the schedule's changes and their actors, the latest change first. */
  async history(caller: Caller, id: string, options: HistoryPage = {}): Promise<ScheduleChange[]> {
    return history(this.#context, caller, id, options)
  }

  /**
   * Requests a full audit of all tenants from the workers. Requests that no audit has answered yet are merged into one. Returns the
   * instant of the request by Postgres' clock, in epoch milliseconds: the audit starts at that instant or later. A worker may start
   * the audit before this call returns.
   */
  async requestAudit(): Promise<number> {
    return requestAudit(this.#context)
  }

  /**
   * The counts of the last full audit of all projects, plus what was found after it ended. Before the first full audit: the last
   * findings or repairs that were stored; undefined if there are none.
   */
  async latestAudit(): Promise<Audit | undefined> {
    return latestAudit(this.#context)
  }

  /** Audits have compared all slots of all projects that came due up to this instant (epoch milliseconds); null if it is not known. */
  async auditedUntil(): Promise<number | null> {
    return auditedUntil(this.#context)
  }

  /** The findings of audits in the caller's project, those of the most recent audit first. A healthy system has none. */
  async findings(caller: Caller, options: FindingPage = {}): Promise<Finding[]> {
    return findings(this.#context, caller, options)
  }

  /** Findings that belong to no project because their schedule is gone. For the operator of the installation, not for a tenant. */
  async unownedFindings(options: FindingPage = {}): Promise<Finding[]> {
    return unownedFindings(this.#context, options)
  }

  /** The kinds of targets that schedules can name. Reads nothing from the database. */
  targetKinds(): readonly TargetKind[] {
    return listTargetKinds(this.#context)
  }

  /** The next slots of a cadence. Writes nothing. */
  async preview(input: PreviewInput): Promise<Preview> {
    return preview(this.#context, input)
  }
}
