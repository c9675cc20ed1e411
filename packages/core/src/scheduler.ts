import { auditedUntil, findings, latestAudit, requestAudit, unownedFindings } from './audit/audits.ts'
import type { Audit, Finding, FindingPage } from './audit/audits.ts'
import type { Events } from './kernel/events.ts'
import { type Caller, scopeOf } from './kernel/scope.ts'
import type { Run, Schedule, ScheduleChange } from './ledger/records.ts'
import { getRun, type RunWithAttempts } from './ledger/runs.ts'
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

/**
 * The entry point for users of the library: it creates, changes and reads schedules, and requests runs. It never calls a target;
 * workers do (I7). Every change is one transaction that records its actor. Slots that are due before a change get their lines in
 * the same transaction or, after a long outage, soon after it.
 *
 * Every method throws a CarillonError with a closed `code`. A method that throws has written nothing.
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
   * Creates at most once per key (1 to 255 printable ASCII characters) within a day. The same request gets the same schedule, as it
   * was when it was created. Another request with the key fails with `idempotency_key_reused`, and the same one fails with
   * `idempotency_in_flight` while the first is under way. A refused input does not use up its key.
   */
  async createOnce(caller: Caller, input: ScheduleInput, idempotencyKey: string): Promise<CreatedOnce> {
    return createOnce(this.#context, caller, input, idempotencyKey)
  }

  /**
   * Creates 1 to 5,000 schedules in one transaction, all or none. For imports: it costs a fraction of single creates. The path of a
   * problem names its input, such as `schedules[17].cadence.expression`.
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

  /** The newest first. */
  async list(caller: Caller, options: ListOptions = {}): Promise<Schedule[]> {
    return list(this.#context, caller, options)
  }

  /** Takes effect at once. A run that has begun continues with its own revision (I5). */
  async edit(
    caller: Caller,
    id: string,
    change: ScheduleEdit,
    options: { readonly revision: number },
  ): Promise<Schedule> {
    return edit(this.#context, caller, id, change, options)
  }

  /** What an edit would change in the slots ahead; for a paused schedule, after a resume. Throws what `edit` would throw. */
  async planEdit(caller: Caller, id: string, change: ScheduleEdit, options: ChangeOptions = {}): Promise<EditPlan> {
    return planEdit(this.#context, caller, id, change, options)
  }

  /** No slot begins until `resume`. Runs that are under way continue. Slots that wait for their turn are skipped. */
  async pause(caller: Caller, id: string, options: ChangeOptions & { readonly reason: string }): Promise<Schedule> {
    return pause(this.#context, caller, id, options)
  }

  /** Continues with the next future slot; slots that passed during the pause do not run. Resets the count of consecutive failures. */
  async resume(caller: Caller, id: string, options: ChangeOptions = {}): Promise<Schedule> {
    return resume(this.#context, caller, id, options)
  }

  /** Permanent. Waiting runs are cancelled. Runs that are under way end by themselves. */
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
   * Requests a run at this instant, also while the schedule is paused. The next slot stays the same. Fails with `overlap` if another
   * run is under way and the policy forbids two.
   */
  async runNow(caller: Caller, id: string): Promise<Run> {
    return runNow(this.#context, caller, id)
  }

  /** Cancels a run: at once if it waits, through its target's abort signal if it is running. */
  async cancel(caller: Caller, runId: string): Promise<Run> {
    return cancel(this.#context, caller, runId)
  }

  async getRun(caller: Caller, runId: string): Promise<RunWithAttempts> {
    return this.#context.transact(caller, (tx) => getRun(tx, { ...scopeOf(caller), id: runId }))
  }

  /** The latest slot first. */
  async listRuns(caller: Caller, scheduleId: string, options: RunPage = {}): Promise<Run[]> {
    return listRunsOf(this.#context, caller, scheduleId, options)
  }

  /** The changes of a schedule and their actors. */
  async history(caller: Caller, id: string): Promise<ScheduleChange[]> {
    return history(this.#context, caller, id)
  }

  /**
   * Requests a full audit of all tenants from the workers; open requests are merged. Returns the instant of the request by Postgres'
   * clock: the audit starts at or after it. A worker may start the audit before this call returns.
   */
  async requestAudit(): Promise<number> {
    return requestAudit(this.#context)
  }

  /** The counts of the latest audit over all projects, and what was found since it ended; undefined before the first audit. */
  async latestAudit(): Promise<Audit | undefined> {
    return latestAudit(this.#context)
  }

  /** Audits have compared all slots that came due up to this instant, in all projects; null before the first audit. */
  async auditedUntil(): Promise<number | null> {
    return auditedUntil(this.#context)
  }

  /** The findings of audits in the caller's project, the newest first. A healthy system has none. */
  async findings(caller: Caller, options: FindingPage = {}): Promise<Finding[]> {
    return findings(this.#context, caller, options)
  }

  /** Findings that belong to no project because their schedule is gone. For the installation, not for a tenant. */
  async unownedFindings(options: FindingPage = {}): Promise<Finding[]> {
    return unownedFindings(this.#context, options)
  }

  /** The next slots of a cadence. Writes nothing. */
  async preview(input: PreviewInput): Promise<Preview> {
    return preview(this.#context, input)
  }
}
