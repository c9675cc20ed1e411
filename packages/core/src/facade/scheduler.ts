import type { Caller } from '../caller.ts'
import type { Events } from '../events.ts'
import { placeOf } from '../place.ts'
import type { Attempt, Run, Schedule, ScheduleChange } from '../schedule.ts'
import {
  AUDIT_TURN,
  findLatestAudit,
  listFindings,
  listUnownedFindings,
  type Audit,
  type Finding,
} from '../store/audits.ts'
import { readReached } from '../store/service-turns.ts'
import { requestAudit } from './audit-request.ts'
import { preview, slots } from './cadence-slots.ts'
import { checkedCount, PAGE_DEFAULT, PAGE_MAX } from './checked-arguments.ts'
import { CreateDesk } from './create-desk.ts'
import { planCreate, planCreateMany, type CreatePlan } from './create-plan.ts'
import { createMany, createManyOnce, type CreatedManyOnce } from './created-schedules.ts'
import { planEdit, type EditPlan } from './edit-plan.ts'
import { restore, skip } from './excluded-slots.ts'
import { createOnce, type CreatedOnce } from './idempotent-create.ts'
import { cancel, getRun, listRunsOf, runNow } from './runs.ts'
import { deleteProject, deleteSchedule } from './schedule-deletion.ts'
import { edit } from './schedule-edit.ts'
import type { ScheduleEdit, ScheduleInput } from './schedule-input.ts'
import { pause, resume } from './schedule-pause.ts'
import { get, history, list } from './schedule-reads.ts'
import { createContext, type SchedulerContext } from './scheduler-context.ts'
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
} from './scheduler-options.ts'

/**
 * What users of the library hold: makes, changes and reads schedules, and asks for runs. It never calls a target; workers
 * do (I7). Every change is one transaction that records its actor. Slots that are due before it get their lines with it, or, after a
 * long outage, soon after.
 *
 * Throws CarillonError with a closed `code`; whatever throws has written nothing.
 */
export class Scheduler {
  readonly events: Events
  readonly #context: SchedulerContext
  readonly #creates: CreateDesk

  constructor(deps: SchedulerDeps, options: SchedulerOptions = {}) {
    this.#context = createContext(deps, options)
    this.#creates = new CreateDesk(this.#context)
    this.events = this.#context.events
  }

  async create(caller: Caller, input: ScheduleInput): Promise<Schedule> {
    return this.#creates.create(caller, input)
  }

  /**
   * Creates at most once per key (1 to 255 printable ASCII characters) within a day, and answers the same request with the
   * same schedule, as it was when it was made. Refused with `idempotency_key_reused` if the request is another one, and with
   * `idempotency_in_flight` while the first is under way. An input that is refused does not use its key up.
   */
  async createOnce(caller: Caller, input: ScheduleInput, idempotencyKey: string): Promise<CreatedOnce> {
    return createOnce(this.#context, caller, input, idempotencyKey)
  }

  /**
   * Creates 1 to 5,000 schedules in one transaction, all or none, at a fraction of what single creates cost: for imports.
   * What is wrong is told with its place, such as `schedules[17].cadence.expression`.
   * @returns their ids, in the order of the inputs
   */
  async createMany(caller: Caller, inputs: readonly ScheduleInput[]): Promise<string[]> {
    return createMany(this.#context, caller, inputs)
  }

  /** The same at most once per key, as `createOnce`. */
  async createManyOnce(
    caller: Caller,
    inputs: readonly ScheduleInput[],
    idempotencyKey: string,
  ): Promise<CreatedManyOnce> {
    return createManyOnce(this.#context, caller, inputs, idempotencyKey)
  }

  /** What a create would make; refuses what it would refuse. Writes nothing. */
  async planCreate(caller: Caller, input: ScheduleInput): Promise<CreatePlan> {
    return planCreate(this.#context, caller, input)
  }

  /** What `createMany` would make, in the order of the inputs; refuses what it would refuse. Writes nothing. */
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

  /** Takes effect at once. A run that has begun goes on as its own revision says (I5). */
  async edit(
    caller: Caller,
    id: string,
    change: ScheduleEdit,
    options: { readonly revision: number },
  ): Promise<Schedule> {
    return edit(this.#context, caller, id, change, options)
  }

  /** What an edit would do to the slots ahead; of a paused schedule, once it is resumed. Refuses what `edit` refuses. */
  async planEdit(caller: Caller, id: string, change: ScheduleEdit, options: ChangeOptions = {}): Promise<EditPlan> {
    return planEdit(this.#context, caller, id, change, options)
  }

  /** Nothing begins until it is resumed. What is under way goes on; what waits for its turn is given up. */
  async pause(caller: Caller, id: string, options: ChangeOptions & { readonly reason: string }): Promise<Schedule> {
    return pause(this.#context, caller, id, options)
  }

  /** Goes on with the next future slot; what passed while it was paused is not made up for. Its failures are forgiven. */
  async resume(caller: Caller, id: string, options: ChangeOptions = {}): Promise<Schedule> {
    return resume(this.#context, caller, id, options)
  }

  /** For good. What waits is cancelled; what is under way ends by itself. */
  async delete(caller: Caller, id: string, options: ChangeOptions = {}): Promise<void> {
    return deleteSchedule(this.#context, caller, id, options)
  }

  /** Deletes everything of the caller's project, in one transaction (E-59). */
  async deleteProject(caller: Caller): Promise<{ readonly deleted: number }> {
    return deleteProject(this.#context, caller)
  }

  /** Takes one future slot out; it will leave the line `skipped: excluded`. */
  async skip(caller: Caller, id: string, scheduledFor: number): Promise<Schedule> {
    return skip(this.#context, caller, id, scheduledFor)
  }

  /** Takes a skip back. */
  async restore(caller: Caller, id: string, scheduledFor: number): Promise<Schedule> {
    return restore(this.#context, caller, id, scheduledFor)
  }

  /**
   * The slots that a schedule's cadence names, whatever its state: of a paused one, those it would have. Fewer than asked for
   * where finding them would take too long.
   */
  async slots(caller: Caller, id: string, range: SlotRange = {}): Promise<ScheduleSlot[]> {
    return slots(this.#context, caller, id, range)
  }

  /**
   * A run at this instant, also while paused. The cadence goes on as if it had not been. Refused with `overlap` if another
   * run is under way and the policy forbids two.
   */
  async runNow(caller: Caller, id: string): Promise<Run> {
    return runNow(this.#context, caller, id)
  }

  /** Ends a run: at once if it waits, through its target's signal if it is under way. */
  async cancel(caller: Caller, runId: string): Promise<Run> {
    return cancel(this.#context, caller, runId)
  }

  async getRun(caller: Caller, runId: string): Promise<Run & { readonly attempts: readonly Attempt[] }> {
    return getRun(this.#context, caller, runId)
  }

  /** The latest slot first; `before` is the slot of the last run of the page before. */
  async listRuns(caller: Caller, scheduleId: string, options: RunPage = {}): Promise<Run[]> {
    return listRunsOf(this.#context, caller, scheduleId, options)
  }

  /** Who did what to a schedule. */
  async history(caller: Caller, id: string): Promise<ScheduleChange[]> {
    return history(this.#context, caller, id)
  }

  /**
   * Has a worker audit everything now; two requests that wait are one. Of no tenant, as the audit. Answers an instant that the
   * audit's start does not precede.
   */
  async requestAudit(): Promise<number> {
    return requestAudit(this.#context)
  }

  /** What the latest audit counted, over all projects, and what was found since it ended; undefined before the first. */
  async latestAudit(): Promise<Audit | undefined> {
    const { transact, clock } = this.#context
    return transact(null, (tx) => findLatestAudit(tx, { now: clock.databaseNow() }))
  }

  /** Slots of all projects that came due up to this instant have been compared with the specs; null before the first. */
  async auditedUntil(): Promise<number | null> {
    return this.#context.transact(null, (tx) => readReached(tx, { name: AUDIT_TURN }))
  }

  /** What audits found in the caller's project, the newest first. In a sound system: nothing. */
  async findings(caller: Caller, { limit = PAGE_DEFAULT }: { readonly limit?: number } = {}): Promise<Finding[]> {
    const query = { ...placeOf(caller), limit: checkedCount(limit, PAGE_MAX, 'limit') }
    return this.#context.transact(caller, (tx) => listFindings(tx, query))
  }

  /** What audits found that belongs to no project, because its schedule is gone. For the installation, not for a tenant. */
  async unownedFindings({ limit = PAGE_DEFAULT }: { readonly limit?: number } = {}): Promise<Finding[]> {
    const query = { limit: checkedCount(limit, PAGE_MAX, 'limit') }
    return this.#context.transact(null, (tx) => listUnownedFindings(tx, query))
  }

  /** What a cadence would do. Writes nothing. */
  async preview(input: PreviewInput): Promise<Preview> {
    return preview(this.#context, input)
  }
}
