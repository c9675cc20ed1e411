import type { RunReason } from './policy/run-state.ts'

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
 * What happens, told in this process. Every event of a slot, a run or a schedule fires after the commit that made it true,
 * and not at all if the process dies in between: the ledger is the record, an event is a hint.
 */
export interface EventMap {
  /** A slot began: its run is in the ledger, its target is about to be called. */
  'run.began': SlotEvent & { readonly runId: string; readonly latenessMs: number }
  /** A slot was recorded as not run. */
  'slot.skipped': SlotEvent & { readonly reason: RunReason }
  /** An attempt was settled; `state` is what its run is in now. */
  'attempt.settled': SlotEvent & {
    readonly runId: string
    readonly attempt: number
    readonly state: 'succeeded' | 'failed' | 'cancelled' | 'pending' | 'retrying'
    readonly durationMs: number
    /** From when it may be tried again; null if it is over. */
    readonly retryAt: number | null
  }
  /** An attempt's worker was no longer its holder when it wanted to settle: nothing was written (I12). */
  'attempt.fenced': { readonly runId: string; readonly scheduleId: string; readonly scheduledFor: number }
  /** The attempt of a run whose worker died was settled in its place; `attempt.settled` tells whether the run goes on. */
  'run.rescued': { readonly runId: string; readonly scheduleId: string; readonly scheduledFor: number }
  'schedule.created': ScheduleEvent
  'schedule.edited': ScheduleEvent & { readonly revision: number }
  /** By a person, or by itself: then the reason begins with `auto:`. */
  'schedule.paused': ScheduleEvent & { readonly reason: string }
  'schedule.resumed': ScheduleEvent
  'schedule.completed': ScheduleEvent
  'schedule.deleted': ScheduleEvent
  /** A grant ends within a week; these schedules act by it. */
  'grant.expiring': {
    readonly tenantId: string
    readonly projectId: string
    readonly grantId: string
    readonly subject: string
    readonly expiresAt: number
    readonly scheduleIds: readonly string[]
  }
  /** This worker's lease ran out before it could be extended; everything it held was let go of. */
  'lease.lost': { readonly workerId: string }
  /** The audit found something. Told at once; `audit.finished` counts it again when everything has been looked at. */
  'audit.found': { readonly findings: number; readonly repaired: number }
  /** An audit has looked at everything. */
  'audit.finished': {
    readonly findings: number
    readonly repaired: number
    readonly slots: number
    /** Schedules that were not, or not wholly, audited. */
    readonly unaudited: number
  }
  /** A service could not do its work this time and will try again. No commit was made. */
  'service.failed': { readonly service: string; readonly error: unknown }
}

export type EventName = keyof EventMap
type Listener<Name extends EventName> = (event: EventMap[Name]) => void

/** Calls listeners in the order they came. What a listener throws is its own affair and breaks nothing here. */
export class Events {
  readonly #listeners = new Map<EventName, Set<Listener<never>>>()

  /** @returns how to stop listening */
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
        if (name !== 'service.failed') this.emit('service.failed', { service: `listener of ${name}`, error })
      }
    }
  }
}
