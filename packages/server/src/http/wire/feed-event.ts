import type { FeedEvent } from '@carillon/api'
import type { FeedEntry } from '@carillon/core'

import { toRun } from './run.ts'
import { toSchedule } from './schedule.ts'

export function toFeedEvent(entry: FeedEntry, now: number): FeedEvent {
  const { cursor: id, change } = entry
  if (entry.kind === 'run') return { id, event: 'run', data: { change: entry.change, run: toRun(entry.run) } }
  const { scheduleId, schedule } = entry
  return {
    id,
    event: 'schedule',
    data: { change, scheduleId, schedule: schedule === null ? null : toSchedule(schedule, now) },
  }
}
