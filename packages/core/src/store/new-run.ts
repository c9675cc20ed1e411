import { identifierAt } from '../identifier.ts'
import type { RunReason } from '../policy/run-state.ts'

/** A new line of the ledger. */
export interface NewRun {
  readonly id: string
  readonly scheduleId: string
  readonly tenantId: string
  readonly projectId: string
  readonly revision: number
  readonly scheduledFor: number
  readonly trigger: 'schedule' | 'manual'
  readonly state: 'running' | 'pending' | 'skipped' | 'failed'
  /** Of a pending run; null for all others. */
  readonly waits: NewWait | null
  readonly reason: RunReason | null
  readonly error: string | null
}

/** Until another run of its schedule has ended, or until any worker takes it; in a lane of the kind of target that it calls. */
interface NewWait {
  readonly for: 'turn' | 'worker'
  readonly targetKind: string
}

interface LineOf {
  readonly id: string
  readonly tenantId: string
  readonly projectId: string
  readonly revision: number
}

interface Line extends Pick<NewRun, 'state'> {
  readonly slot: number
  /** @default null */
  readonly waits?: NewWait | null
  /** @default null */
  readonly reason?: RunReason | null
  /** JSON text. @default null */
  readonly error?: string | null
  /** @default 'schedule' */
  readonly trigger?: NewRun['trigger']
}

/** The line of a slot, under an id of its own. */
export function newRun(schedule: LineOf, line: Line, now: number): NewRun {
  const { slot, state, waits = null, reason = null, error = null, trigger = 'schedule' } = line
  return {
    id: identifierAt(now),
    scheduleId: schedule.id,
    tenantId: schedule.tenantId,
    projectId: schedule.projectId,
    revision: schedule.revision,
    scheduledFor: slot,
    trigger,
    state,
    waits,
    reason,
    error,
  }
}
