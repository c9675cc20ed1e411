import type { RunState } from '@carillon/api'

interface SlotEvent {
  readonly tenantId: string
  readonly projectId: string
  readonly scheduleId: string
  readonly targetKind: string
  /** Epoch milliseconds. */
  readonly scheduledFor: number
}

interface ScheduleEvent {
  readonly tenantId: string
  readonly projectId: string
  readonly scheduleId: string
  readonly actor: string
}

/**
 * The events of this process. An event of a slot, a run or a schedule fires after its commit, and not at all if the process dies in
 * between: the ledger is the record, an event is a hint.
 */
export interface EventMap {
  /** A slot began: its run is in the ledger, its target is about to be called. */
  'run.began': SlotEvent & { readonly runId: string; readonly latenessMs: number }
  /** A slot was recorded as not run. */
  'slot.skipped': SlotEvent & { readonly reason: string }
  /** An attempt was settled; `state` is the new state of its run. */
  'attempt.settled': SlotEvent & {
    readonly runId: string
    readonly attempt: number
    readonly state: Exclude<RunState, 'running' | 'detached' | 'skipped'>
    readonly durationMs: number
    /** When the run may be tried again; null if it is over. */
    readonly retryAt: number | null
  }
  /** A target passed the work of a run on: the run ends when it is completed from elsewhere, or at its deadline. */
  'run.detached': SlotEvent & { readonly runId: string; readonly attempt: number; readonly deadlineAt: number }
  /** A worker that no longer holds a run tried to settle its attempt: nothing was written (I12). */
  'attempt.fenced': { readonly runId: string; readonly scheduleId: string; readonly scheduledFor: number }
  /** Another worker settled the attempt of a dead worker. `attempt.settled` says whether the run goes on. */
  'run.rescued': { readonly runId: string; readonly scheduleId: string; readonly scheduledFor: number }
  'schedule.created': ScheduleEvent
  'schedule.edited': ScheduleEvent & { readonly revision: number }
  /** By a person, or automatically: then the reason begins with `auto:`. */
  'schedule.paused': ScheduleEvent & { readonly reason: string }
  'schedule.resumed': ScheduleEvent
  'schedule.completed': ScheduleEvent
  'schedule.deleted': ScheduleEvent
  /** A grant expires within a week. These schedules act by it. */
  'grant.expiring': {
    readonly tenantId: string
    readonly projectId: string
    readonly grantId: string
    readonly subject: string
    readonly expiresAt: number
    readonly scheduleIds: readonly string[]
  }
  /** This worker's lease expired before it was extended. The worker gave up all its runs. */
  'lease.lost': { readonly workerId: string }
  /** The audit found something. Emitted at once; `audit.finished` counts it again when the audit is complete. */
  'audit.found': { readonly findings: number; readonly repaired: number }
  /** An audit is complete. */
  'audit.finished': {
    readonly findings: number
    readonly repaired: number
    readonly slots: number
    /** How many schedules the audit left out, in whole or in part. */
    readonly unaudited: number
  }
  /** A service, a part of one or a listener failed. A service tries again. What was committed before the failure stays. */
  'service.failed': { readonly service: string; readonly error: unknown }
}

export type EventName = keyof EventMap
type Listener<Name extends EventName> = (event: EventMap[Name]) => void

/** The name under which a failing listener is reported: this, then the name of the event. */
export const LISTENER_OF = 'listener of '

/** Calls listeners in the order of their registration. An error of a listener is emitted as `service.failed` and stops nothing. */
export class Events {
  readonly #listeners = new Map<EventName, Set<Listener<never>>>()

  /** @returns a function that removes the listener */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    const listeners = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, listeners)
    listeners.add(listener)
    return () => listeners.delete(listener)
  }

  emit<Name extends EventName>(name: Name, event: EventMap[Name]): void {
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        ;(listener as Listener<Name>)(event)
      } catch (error) {
        if (name !== 'service.failed') this.emit('service.failed', { service: LISTENER_OF + name, error })
      }
    }
  }
}
