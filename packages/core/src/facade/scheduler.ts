import { parse, type Cadence, type CadenceSpec } from '@carillon/cadence'

import type { Caller } from '../caller.ts'
import { systemClock, type Clock } from '../clock.ts'
import type { Jobs } from '../engine.ts'
import { slotJobs } from '../engine/slot-jobs.ts'
import { CarillonError, invalidInput } from '../errors.ts'
import { Events } from '../events.ts'
import { identifierAt } from '../identifier.ts'
import { endOpenRuns } from '../keeper/begin-batch.ts'
import { SlotBook } from '../keeper/slot-book.ts'
import { checkGrant } from '../policy/grant.ts'
import { decideOverlap } from '../policy/overlap.ts'
import { spreadOffsetMs } from '../policy/spread.ts'
import { checkedRetentionMs } from '../retention-days.ts'
import type { Attempt, Run, Schedule, ScheduleChange } from '../schedule.ts'
import { findLatestAudit, listFindings, type Audit, type Finding } from '../store/audits.ts'
import { transact, type Db, type Tx } from '../store/database.ts'
import { findGrant } from '../store/grants.ts'
import { ensureMonthsOf, MissingMonthError } from '../store/missing-month.ts'
import { notifyCancel } from '../store/notifications.ts'
import { readClock, readNow } from '../store/now.ts'
import { ensurePartitions } from '../store/partitions.ts'
import { findRun, listAttempts, listChanges, listOpenRuns, listRuns } from '../store/run-records.ts'
import { insertChanges, type ScheduleChangeKind } from '../store/schedule-changes.ts'
import { lockSchedules } from '../store/schedule-lock.ts'
import { findSchedule, listSchedules, lockProject, lockSchedule } from '../store/schedule-records.ts'
import {
  countManualRun,
  deleteSchedules,
  insertSchedule,
  pauseSchedule,
  resumeSchedule,
  reviseSchedule,
  setExcludedSlots,
} from '../store/schedule-writes.ts'
import { endWaitingRuns, findPendingRuns, requestCancel, skipWaitingSlots } from '../store/waiting-runs.ts'
import type { Target } from '../target.ts'
import { isUuid } from '../uuid.ts'
import { checkedCount, checkedId, checkedInstant, checkedState, checkedText } from './checked-arguments.ts'
import { closeDueSlots } from './due-slots.ts'
import { insertManualRun } from './manual-run.ts'
import { dueOf, nextDueAfter } from './next-due.ts'
import { refusingUnknownGrant, runNotFound, scheduleNotFound, stateConflict } from './refusals.ts'
import {
  checkCadence,
  checkEdit,
  checkInput,
  isStorable,
  type ScheduleEdit,
  type ScheduleInput,
} from './schedule-input.ts'
import type {
  ChangeOptions,
  ListOptions,
  Preview,
  PreviewInput,
  SchedulerDeps,
  SchedulerOptions,
} from './scheduler-options.ts'

const MINIMUM_SECONDS_DEFAULT = 60
const LIMIT_DEFAULT = 50
const LIMIT_MAX = 200
const COUNT_DEFAULT = 5
const COUNT_MAX = 100
const EXCLUDED_MAX = 100
const REASON_MAX = 500
/** Of a project that is deleted, each schedule may lack earlier months than the one before. */
const MONTH_TRIES_MAX = 5
const DAY_MS = 86_400_000

/**
 * What users of the library hold: makes, changes and reads schedules, and asks for runs. It never calls a target; workers
 * do (I7). Every change is one transaction that records its actor, and first gives what is due its line.
 *
 * Throws CarillonError with a closed `code`; whatever throws has written nothing.
 */
export class Scheduler {
  readonly events: Events
  readonly #db: Db
  readonly #clock: Clock
  readonly #jobs: Jobs
  readonly #targets: ReadonlyMap<string, Target>
  readonly #minimumSeconds: number
  readonly #retentionMs: number
  readonly #book = new SlotBook()

  constructor(deps: SchedulerDeps, options: SchedulerOptions = {}) {
    this.#db = deps.db
    this.#targets = deps.targets
    this.#clock = deps.clock ?? systemClock
    this.#jobs = deps.jobs ?? slotJobs
    this.events = deps.events ?? new Events()
    this.#minimumSeconds = options.minimumSeconds ?? MINIMUM_SECONDS_DEFAULT
    this.#retentionMs = checkedRetentionMs(options.retentionDays)
  }

  async create(caller: Caller, input: ScheduleInput): Promise<Schedule> {
    const now = this.#clock.databaseNow()
    const at = await readNow(this.#db, now)
    const checked = checkInput(input, this.#context(at))
    const id = identifierAt(at)
    const next = nextDueAfter(checked.cadence, at, id, checked.policy.spreadSeconds)
    if (next.nextSlotAt === null) throw invalidInput([{ path: 'cadence', message: 'expected a slot ahead, got none' }])
    const { tenantId, projectId, subject } = caller
    await refusingUnknownGrant(() =>
      insertSchedule(this.#db, {
        ...checked,
        ...next,
        cadence: checked.cadence.spec,
        id,
        tenantId,
        projectId,
        ownerSubject: checked.ownerSubject ?? subject,
        actor: subject,
        now,
      }),
    )
    this.events.emit('schedule.created', { tenantId, projectId, scheduleId: id, actor: subject })
    return this.get(caller, id)
  }

  async get(caller: Caller, id: string): Promise<Schedule> {
    const schedule = isUuid(id) ? await findSchedule(this.#db, { ...within(caller), id }) : undefined
    if (schedule === undefined) throw scheduleNotFound(id)
    return schedule
  }

  /** The newest first. */
  async list(caller: Caller, options: ListOptions = {}): Promise<Schedule[]> {
    return listSchedules(this.#db, {
      ...within(caller),
      state: checkedState(options.state, 'state'),
      targetKind: checkedText(options.targetKind, 'targetKind'),
      nameContains: checkedText(options.nameContains, 'nameContains'),
      before: checkedId(options.before, 'before'),
      limit: checkedCount(options.limit ?? LIMIT_DEFAULT, LIMIT_MAX, 'limit'),
    })
  }

  /** Takes effect at once. A run that has begun goes on as its own revision says (I5). */
  async edit(
    caller: Caller,
    id: string,
    edit: ScheduleEdit,
    { revision }: { readonly revision: number },
  ): Promise<Schedule> {
    await this.#change(caller, id, { revision }, async (tx, schedule, now) => {
      const checked = checkEdit(edit, contentOf(schedule), this.#context(now))
      const isNewCadence = edit.cadence !== undefined && !isSameCadence(checked.cadence.spec, schedule.cadence)
      if (isNewCadence) await this.#closeDue(tx, schedule, 'superseded', now)
      const { spreadSeconds } = checked.policy
      const next =
        isNewCadence && schedule.state !== 'paused'
          ? nextDueAfter(checked.cadence, now, id, spreadSeconds)
          : dueOf(schedule.nextSlotAt, id, spreadSeconds)
      if (isNewCadence && schedule.state !== 'paused' && next.nextSlotAt === null) {
        throw invalidInput([{ path: 'cadence', message: 'expected a slot ahead, got none' }])
      }
      await refusingUnknownGrant(() =>
        reviseSchedule(tx, {
          ...checked,
          ...next,
          cadence: checked.cadence.spec,
          id,
          state: schedule.state === 'paused' ? 'paused' : next.nextSlotAt === null ? 'completed' : 'active',
          actor: caller.subject,
          now: this.#clock.databaseNow(),
        }),
      )
      return 'edited'
    })
    const edited = await this.get(caller, id)
    this.events.emit('schedule.edited', { ...changeEvent(caller, id), revision: edited.revision })
    return edited
  }

  /** Nothing begins until it is resumed. What is under way goes on; what waits for its turn is given up. */
  async pause(
    caller: Caller,
    id: string,
    { reason, ...options }: ChangeOptions & { readonly reason: string },
  ): Promise<Schedule> {
    if (!isReason(reason)) {
      const message = `expected a reason of 1 to ${REASON_MAX} characters that does not begin with auto:`
      throw invalidInput([{ path: 'reason', message }])
    }
    await this.#change(caller, id, options, async (tx, schedule, now) => {
      if (schedule.state !== 'active') throw stateConflict(schedule, 'active')
      await this.#closeDue(tx, schedule, 'paused', now)
      const databaseNow = this.#clock.databaseNow()
      await this.#jobs.withdraw(tx, await skipWaitingSlots(tx, { scheduleIds: [id], now: databaseNow }))
      await pauseSchedule(tx, { id, actor: caller.subject, reason, now: databaseNow })
      return { change: 'paused', reason }
    })
    this.events.emit('schedule.paused', { ...changeEvent(caller, id), reason })
    return this.get(caller, id)
  }

  /** Goes on with the next future slot; what passed while it was paused is not made up for. Its failures are forgiven. */
  async resume(caller: Caller, id: string, options: ChangeOptions = {}): Promise<Schedule> {
    await this.#change(caller, id, options, async (tx, schedule, now) => {
      if (schedule.state !== 'paused') throw stateConflict(schedule, 'paused')
      const next = nextDueAfter(cadenceOf(schedule), now, id, schedule.policy.spreadSeconds)
      await resumeSchedule(tx, { id, ...next, actor: caller.subject, now: this.#clock.databaseNow() })
      return 'resumed'
    })
    this.events.emit('schedule.resumed', changeEvent(caller, id))
    return this.get(caller, id)
  }

  /** For good. What waits is cancelled; what is under way ends by itself. */
  async delete(caller: Caller, id: string, options: ChangeOptions = {}): Promise<void> {
    await this.#change(caller, id, options, async (tx, schedule, now) => {
      await this.#deleteLocked(tx, caller, [schedule], now)
      return 'deleted'
    })
    this.events.emit('schedule.deleted', changeEvent(caller, id))
  }

  /** Deletes everything of the caller's project, in one transaction (E-59). */
  async deleteProject(caller: Caller): Promise<{ readonly deleted: number }> {
    const ids = await this.#transact(async (tx) => {
      const schedules = await lockProject(tx, within(caller))
      if (schedules.length === 0) return []
      const databaseNow = this.#clock.databaseNow()
      const now = await readClock(tx, databaseNow)
      const scheduleIds = schedules.map(({ id }) => id)
      await this.#deleteLocked(tx, caller, schedules, now)
      await insertChanges(tx, {
        scheduleIds,
        change: 'deleted',
        actor: caller.subject,
        reason: 'project deleted',
        now: databaseNow,
      })
      return scheduleIds
    })
    for (const id of ids) this.events.emit('schedule.deleted', changeEvent(caller, id))
    return { deleted: ids.length }
  }

  /**
   * A run at this instant, also while paused. The cadence goes on as if it had not been. Refused with `overlap` if another
   * run is under way and the policy forbids two.
   */
  async runNow(caller: Caller, id: string): Promise<Run> {
    const runId = await this.#locked(caller, id, async (tx, schedule, now) => {
      const databaseNow = this.#clock.databaseNow()
      await this.#checkGrant(tx, schedule, now)
      const open = await listOpenRuns(tx, { scheduleIds: [id] })
      const { decision, ...plan } = decideOverlap({ policy: schedule.policy.overlap, open: open.map(toOpenRun) })
      if (decision === 'skip') {
        const message = `another run is under way (${open[0]?.id ?? 'unknown'}), and the policy forbids two: wait or cancel it`
        throw new CarillonError('overlap', message)
      }
      await endOpenRuns(tx, this.#jobs, [plan], databaseNow)
      await countManualRun(tx, { id, failures: plan.supersede.length })
      const run = await insertManualRun(tx, { schedule, cadence: cadenceOf(schedule), now, databaseNow })
      if (decision === 'run') {
        const { scheduledFor } = run
        await this.#jobs.enqueue(tx, [{ scheduleId: id, scheduledFor, targetKind: schedule.target.kind, runAt: null }])
      }
      return run.id
    })
    return this.getRun(caller, runId)
  }

  /** Takes one future slot out; it will leave the line `skipped: excluded`. */
  async skip(caller: Caller, id: string, scheduledFor: number): Promise<Schedule> {
    await this.#change(caller, id, {}, async (tx, schedule, now) => {
      const isAhead = scheduledFor + spreadOffsetMs(id, schedule.policy.spreadSeconds) > now
      if (!isAhead || cadenceOf(schedule).next(scheduledFor - 1) !== scheduledFor) {
        const message = 'expected a slot of the schedule that is still ahead: look at its next slots'
        throw new CarillonError('slot_not_found', message, { problems: [{ path: 'scheduledFor', message }] })
      }
      const slots = new Set([...schedule.excludedSlots.filter((slot) => slot > now - DAY_MS), scheduledFor])
      if (slots.size > EXCLUDED_MAX) {
        throw invalidInput([
          { path: 'scheduledFor', message: `expected at most ${EXCLUDED_MAX} skipped slots: pause it instead` },
        ])
      }
      await setExcludedSlots(tx, { id, slots: [...slots].toSorted((a, b) => a - b) })
      return { change: 'slot_skipped', reason: new Date(scheduledFor).toISOString() }
    })
    return this.get(caller, id)
  }

  /** Takes a skip back. */
  async restore(caller: Caller, id: string, scheduledFor: number): Promise<Schedule> {
    await this.#change(caller, id, {}, async (tx, schedule) => {
      if (!schedule.excludedSlots.includes(scheduledFor)) {
        throw new CarillonError('slot_not_found', 'expected a slot that was to be skipped')
      }
      await setExcludedSlots(tx, { id, slots: schedule.excludedSlots.filter((slot) => slot !== scheduledFor) })
      return { change: 'slot_restored', reason: new Date(scheduledFor).toISOString() }
    })
    return this.get(caller, id)
  }

  /** Ends a run: at once if it waits, through its target's signal if it is under way. */
  async cancel(caller: Caller, runId: string): Promise<Run> {
    const { scheduleId } = await this.getRun(caller, runId)
    await transact(this.#db, this.#clock, async (tx) => {
      const now = this.#clock.databaseNow()
      await lockSchedules(tx, { scheduleIds: [scheduleId] })
      const run = await findRun(tx, { ...within(caller), id: runId })
      if (run === undefined) throw runNotFound(runId)
      if (run.state === 'running') {
        await notifyCancel(tx, { runIds: await requestCancel(tx, { runIds: [runId], actor: caller.subject, now }) })
        return
      }
      const ended = await endWaitingRuns(tx, { runIds: [runId], state: 'cancelled', reason: null, now })
      if (ended.length === 0) {
        throw new CarillonError('state_conflict', `expected a run that is not over, got one that is ${run.state}`)
      }
      await this.#jobs.withdraw(tx, ended)
      const freed = await findPendingRuns(tx, { scheduleIds: [scheduleId] })
      await this.#jobs.enqueue(
        tx,
        freed.map((slot) => ({ ...slot, runAt: null })),
      )
    })
    return this.getRun(caller, runId)
  }

  async getRun(caller: Caller, runId: string): Promise<Run & { readonly attempts: readonly Attempt[] }> {
    const run = isUuid(runId) ? await findRun(this.#db, { ...within(caller), id: runId }) : undefined
    if (run === undefined) throw runNotFound(runId)
    return { ...run, attempts: await listAttempts(this.#db, run) }
  }

  /** The latest slot first; `before` is the slot of the last run of the page before. */
  async listRuns(
    caller: Caller,
    scheduleId: string,
    options: { before?: number; limit?: number } = {},
  ): Promise<Run[]> {
    await this.get(caller, scheduleId)
    const limit = checkedCount(options.limit ?? LIMIT_DEFAULT, LIMIT_MAX, 'limit')
    const before = checkedInstant(options.before, 'before')
    return listRuns(this.#db, { ...within(caller), scheduleId, before, limit })
  }

  /** Who did what to a schedule. */
  async history(caller: Caller, id: string): Promise<ScheduleChange[]> {
    await this.get(caller, id)
    return listChanges(this.#db, { ...within(caller), scheduleId: id })
  }

  /** What the latest audit counted, over all projects; undefined before the first. */
  latestAudit(): Promise<Audit | undefined> {
    return findLatestAudit(this.#db)
  }

  /** What the latest audits found in the caller's project, the newest first. In a sound system: nothing. */
  findings(caller: Caller, { limit = LIMIT_DEFAULT }: { readonly limit?: number } = {}): Promise<Finding[]> {
    return listFindings(this.#db, { ...within(caller), limit: checkedCount(limit, LIMIT_MAX, 'limit') })
  }

  /** What a cadence would do. Writes nothing. */
  async preview({ cadence, from, count }: PreviewInput): Promise<Preview> {
    const now = await readNow(this.#db, this.#clock.databaseNow())
    const checked = checkCadence(cadence, this.#context(now))
    if (!checked.ok) throw invalidInput(checked.problems)
    const start = checkedInstant(from, 'from') ?? now
    const limit = checkedCount(count ?? COUNT_DEFAULT, COUNT_MAX, 'count')
    return {
      description: checked.value.describe(),
      slots: checked.value
        .slots(start, { limit })
        .map((slot) => ({ scheduledFor: slot, local: checked.value.local(slot) })),
      warnings: checked.value.warnings(start),
    }
  }

  /** One transaction around a change of one schedule: lock, compare the revision, change, record. */
  async #change(
    caller: Caller,
    id: string,
    { revision }: ChangeOptions,
    change: (
      tx: Tx,
      schedule: Schedule,
      now: number,
    ) => Promise<ScheduleChangeKind | { change: ScheduleChangeKind; reason: string }>,
  ): Promise<void> {
    await this.#locked(caller, id, async (tx, schedule, now) => {
      if (revision !== undefined && revision !== schedule.revision) {
        const message = `expected revision ${revision}, found ${schedule.revision}: read the schedule again`
        throw new CarillonError('revision_conflict', message)
      }
      const made = await change(tx, schedule, now)
      const record = typeof made === 'string' ? { change: made, reason: null } : made
      await insertChanges(tx, {
        ...record,
        scheduleIds: [id],
        actor: caller.subject,
        now: this.#clock.databaseNow(),
      })
    })
  }

  #locked<Result>(
    caller: Caller,
    id: string,
    work: (tx: Tx, schedule: Schedule, now: number) => Promise<Result>,
  ): Promise<Result> {
    if (!isUuid(id)) throw scheduleNotFound(id)
    return this.#transact(async (tx) => {
      const schedule = await lockSchedule(tx, { ...within(caller), id })
      if (schedule === undefined) throw scheduleNotFound(id)
      // Not before the lock was had: a begin that held it may have begun a slot meanwhile, which is not ahead any more.
      return work(tx, schedule, await readClock(tx, this.#clock.databaseNow()))
    })
  }

  /**
   * The whole change again, should the ledger have no month for a line of it: upkeep makes them, but no worker may have
   * started yet. From the first that is missing to this one, for what is due is written in portions; of a slot that the
   * ledger does not remember, its own.
   */
  async #transact<Result>(work: (tx: Tx) => Promise<Result>): Promise<Result> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await transact(this.#db, this.#clock, work)
      } catch (error) {
        if (!(error instanceof MissingMonthError) || tries >= MONTH_TRIES_MAX) throw error
        await ensureMonthsOf(this.#db, error.slots)
        const now = await readNow(this.#db, this.#clock.databaseNow())
        const from = Math.min(...error.slots.filter((slot) => slot >= now - this.#retentionMs), now)
        await ensurePartitions(this.#db, { from: new Date(from), to: new Date(now) })
      }
    }
  }

  async #deleteLocked(tx: Tx, caller: Caller, schedules: readonly Schedule[], now: number): Promise<void> {
    const ids = schedules.map(({ id }) => id)
    for (const schedule of schedules) await this.#closeDue(tx, schedule, 'superseded', now)
    await this.#cancelWaiting(tx, ids)
    await deleteSchedules(tx, { ids, actor: caller.subject, now: this.#clock.databaseNow() })
  }

  #closeDue(tx: Tx, schedule: Schedule, reason: 'paused' | 'superseded', now: number): Promise<void> {
    const databaseNow = this.#clock.databaseNow()
    return closeDueSlots(tx, this.#book, { schedule, reason, now, databaseNow, ledgerFrom: now - this.#retentionMs })
  }

  /** I8: a run-now acts by the grant of its schedule, as a slot does. */
  async #checkGrant(tx: Tx, { tenantId, projectId, grantId }: Schedule, now: number): Promise<void> {
    if (grantId === null) return
    const grant = (await findGrant(tx, { tenantId, projectId, id: grantId })) ?? null
    const problem = checkGrant({ grant, now, requiredScope: null })
    if (problem === null) return
    const message = `expected a grant that carries a run, got one that is ${problem.replace('grant_', '')}: renew it first`
    throw new CarillonError('grant_invalid', message)
  }

  /** Cancels what waits, to start or to be retried. */
  async #cancelWaiting(tx: Tx, scheduleIds: readonly string[]): Promise<void> {
    const open = await listOpenRuns(tx, { scheduleIds })
    const runIds = open.filter(({ state }) => state !== 'running').map(({ id }) => id)
    if (runIds.length === 0) return
    const now = this.#clock.databaseNow()
    await this.#jobs.withdraw(tx, await endWaitingRuns(tx, { runIds, state: 'cancelled', reason: null, now }))
  }

  #context(now: number): { targets: ReadonlyMap<string, Target>; now: number; minimumSeconds: number } {
    return { targets: this.#targets, now, minimumSeconds: this.#minimumSeconds }
  }
}

function within({ tenantId, projectId }: Caller): { tenantId: string; projectId: string } {
  return { tenantId, projectId }
}

/** What a person may give as a reason: `auto:` is what the scheduler itself says (E-61). */
function isReason(reason: unknown): boolean {
  if (typeof reason !== 'string' || reason.length > REASON_MAX || !isStorable(reason)) return false
  return reason.trim() !== '' && !reason.trimStart().startsWith('auto:')
}

function changeEvent(
  caller: Caller,
  scheduleId: string,
): { scheduleId: string; actor: string } & ReturnType<typeof within> {
  return { ...within(caller), scheduleId, actor: caller.subject }
}

function contentOf({ name, cadence, target, policy, grantId }: Schedule): ScheduleInput {
  return { name, cadence, target, policy, grantId: grantId ?? undefined }
}

function cadenceOf(schedule: Schedule): Cadence {
  const result = parse(schedule.cadence, { minimumSeconds: 0 })
  if (!result.ok) {
    throw invalidInput(result.problems.map(({ field, message }) => ({ path: `cadence.${field}`, message })))
  }
  return result.cadence
}

function isSameCadence(a: CadenceSpec, b: CadenceSpec): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

function toOpenRun({ id, state, trigger }: Run): {
  id: string
  state: 'pending' | 'running' | 'retrying'
  trigger: Run['trigger']
} {
  return { id, state: state as 'pending' | 'running' | 'retrying', trigger }
}
