import { SYSTEM_SUBJECT } from '@carillon/api'

import type { Tx } from '../db/database.ts'
import { readCurrentTime } from '../db/now.ts'
import { insertChanges } from '../db/schedule-changes.ts'
import type { Events } from '../kernel/events.ts'
import { backlogOf, insertBacklogs } from '../ledger/backlogs.ts'
import { skipWaitingSlots } from '../ledger/open-runs.ts'
import type { ScheduleEffect } from '../ports/target.ts'
import type { ScheduleEffects } from './hooks.ts'
import { completeSchedules, findActive, pauseSchedules, type ActiveSchedule } from './store/effects.ts'

/** A schedule that a hook completed or paused. */
export interface ScheduleEffectMade {
  readonly schedule: ActiveSchedule
  readonly effect: ScheduleEffect
}

/**
 * Completes and pauses schedules as hooks asked. A schedule that is not active stays as it is. The slots that are due are recorded as a
 * backlog first, whose lines a worker writes: none of them may vanish with the change (I6). Call with the schedules' rows locked, after
 * their runs are written.
 * @param now an instant that a test sets; null: Postgres' clock
 */
export async function applyEffects(
  tx: Tx,
  effects: ScheduleEffects,
  now: Date | null,
): Promise<readonly ScheduleEffectMade[]> {
  if (effects.size === 0) return []
  const active = await findActive(tx, { scheduleIds: [...effects.keys()] })
  const made = active.flatMap((schedule) => {
    const effect = effects.get(schedule.id)
    return effect === undefined ? [] : [{ schedule, effect }]
  })
  if (made.length === 0) return []
  const at = await readCurrentTime(tx, now)
  const backlogs = made.flatMap(({ schedule, effect }) => {
    const reason = effect.kind === 'pause' ? 'paused' : 'superseded'
    return backlogOf(schedule, reason, at) ?? []
  })
  if (backlogs.length > 0) await insertBacklogs(tx, { backlogs, now })
  const completed = made.filter(({ effect }) => effect.kind === 'complete').map(({ schedule }) => schedule.id)
  if (completed.length > 0) {
    await completeSchedules(tx, { scheduleIds: completed })
    await insertChanges(tx, { scheduleIds: completed, change: 'completed', actor: SYSTEM_SUBJECT, reason: null, now })
  }
  const paused = made.flatMap(({ schedule, effect }) =>
    effect.kind === 'pause' ? [{ id: schedule.id, reason: effect.reason }] : [],
  )
  for (const [reason, schedules] of Map.groupBy(paused, (pause) => pause.reason)) {
    const scheduleIds = schedules.map(({ id }) => id)
    await skipWaitingSlots(tx, { scheduleIds, now })
    await pauseSchedules(tx, { scheduleIds, reason, now })
    await insertChanges(tx, { scheduleIds, change: 'paused', actor: SYSTEM_SUBJECT, reason, now })
  }
  return made
}

export function emitEffects(events: Events, made: readonly ScheduleEffectMade[]): void {
  for (const { schedule, effect } of made) {
    const { tenantId, projectId, id: scheduleId } = schedule
    const changed = { tenantId, projectId, scheduleId, actor: SYSTEM_SUBJECT }
    if (effect.kind === 'complete') events.emit('schedule.completed', changed)
    else events.emit('schedule.paused', { ...changed, reason: effect.reason })
  }
}
