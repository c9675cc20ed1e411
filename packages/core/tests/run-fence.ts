import { systemClock } from '../src/kernel/clock.ts'
import { Events } from '../src/kernel/events.ts'
import type { RunFence } from '../src/ledger/held-run.ts'
import { Hooks } from '../src/pipeline/hooks.ts'

/** The hooks of kinds that have none. */
export const NO_HOOKS = new Hooks({ clock: systemClock, events: new Events(), targets: new Map() })

const ID = '01980000-0000-7000-8000-000000000001'

/** A run of the scripted target that a worker holds for its first attempt. */
export const FENCE: RunFence = {
  runId: ID,
  scheduleId: ID,
  scheduledFor: Date.UTC(2026, 2, 2, 9),
  tenantId: 'acme',
  projectId: 'web',
  revision: 1,
  trigger: 'schedule',
  workerId: ID,
  token: 1,
  attempt: 1,
  targetKind: 'test',
  target: { kind: 'test' },
}
