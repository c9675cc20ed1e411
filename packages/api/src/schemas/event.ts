import { z } from 'zod'

import { component } from '../component.ts'
import { RUN_STATES, SCHEDULE_CHANGES } from '../words.ts'
import { run } from './run.ts'
import { schedule } from './schedule.ts'

/** The data of an event, by the event's name. */
export const liveEvents = {
  run: component(
    'RunEvent',
    z.object({
      change: z.enum(RUN_STATES).meta({ description: 'The state that the run changed to.' }),
      run: run.meta({ description: 'The run as it is now.' }),
    }),
    'A run began, went on or ended.',
  ),
  schedule: component(
    'ScheduleEvent',
    z.object({
      change: z.enum(SCHEDULE_CHANGES).meta({ examples: ['paused'] }),
      scheduleId: z.uuid(),
      schedule: schedule.nullable().meta({ description: 'The schedule as it is now; null if it was deleted.' }),
    }),
    'A caller changed a schedule, requested a run of it or cancelled one, or the schedule completed or paused itself.',
  ),
  reset: component(
    'ResetEvent',
    z.object({ reason: z.string() }),
    'The events after the given Last-Event-ID are no longer stored: read again everything that you show.',
  ),
} as const

type LiveEventName = keyof typeof liveEvents

export type LiveEvent = {
  [Name in LiveEventName]: {
    readonly id: string
    readonly event: Name
    readonly data: z.infer<(typeof liveEvents)[Name]>
  }
}[LiveEventName]
