import { z } from 'zod'

import { component } from '../component.ts'
import { expected } from '../expected.ts'
import { cadence } from './cadence.ts'
import { grantWarning } from './grant.ts'
import { instant, instantInput } from './instant.ts'
import { countInput, pageOf, pageQuery } from './page.ts'
import { policy, policyInput } from './policy.ts'
import { target } from './target.ts'

const SCHEDULE_STATES = ['active', 'paused', 'completed'] as const

const scheduleState = z.enum(SCHEDULE_STATES, expected(`one of ${SCHEDULE_STATES.join(', ')}`))

const content = {
  name: z.string().min(1).max(200),
  cadence,
  target,
}

const EXAMPLE = {
  name: 'Morning digest',
  cadence: { kind: 'cron', expression: '0 9 * * 1-5', timezone: 'Europe/Madrid' },
  target: { kind: 'http', url: 'https://digest.internal/run', method: 'POST', payload: { list: 'a' } },
  policy: { overlap: 'forbid', missed: 'skip', autoPauseThreshold: 10 },
}

export const scheduleInput = component(
  'ScheduleInput',
  z
    .object({
      ...content,
      policy: policyInput.optional(),
      grantId: z.uuid().nullable().optional().meta({
        description: 'By what right it runs. Without it, or null: by a grant of its own, which ends with it.',
      }),
      ownerSubject: z
        .string()
        .optional()
        .meta({ description: 'Whose it is. Without it the caller’s.', examples: ['user:alice'] }),
    })
    .meta({ examples: [EXAMPLE] }),
  'A schedule to be made.',
)

export const scheduleEdit = component(
  'ScheduleEdit',
  z
    .object({
      ...content,
      policy: policyInput,
      grantId: z
        .uuid()
        .nullable()
        .meta({ description: 'Null: a grant of its own, made anew unless it has one in force.' }),
    })
    .partial(),
  'What is to change. What is left out stays; a policy is merged field by field.',
)

export const schedule = component(
  'Schedule',
  z.object({
    id: z.uuid(),
    tenant: z.string(),
    project: z.string(),
    ownerSubject: z.string(),
    name: z.string(),
    state: scheduleState,
    revision: z.int().meta({ description: 'Grows with every edit; the ETag.' }),
    cadence,
    description: z.string().meta({ description: 'The cadence in plain English.' }),
    target,
    policy,
    grantId: z.uuid().meta({ description: 'By what right it runs.' }),
    grantExpiresAt: instant.nullable().meta({ description: 'Null: never.' }),
    grantWarning,
    nextSlotAt: instant.nullable().meta({ description: 'Null unless active.' }),
    dueAt: instant.nullable().meta({ description: 'The next slot plus the share of the spread.' }),
    skippedSlots: z.array(instant).meta({ description: 'Slots ahead that somebody took out.' }),
    runCount: z.int(),
    failureCount: z.int(),
    consecutiveFailures: z.int(),
    createdBy: z.string(),
    createdAt: instant,
    updatedBy: z.string().nullable(),
    updatedAt: instant.nullable(),
    pausedBy: z.string().nullable(),
    pausedReason: z.string().nullable().meta({ description: 'Begins with `auto:` if it paused itself.' }),
    pausedAt: instant.nullable(),
  }),
  'A schedule: who, when, what, by what right, under which policy.',
)

export const schedulePage = component('SchedulePage', pageOf(schedule))

export const scheduleQuery = z.strictObject({
  state: scheduleState.optional(),
  targetKind: z.string(expected('a kind of target')).optional(),
  q: z.string(expected('a part of a name')).optional().meta({ description: 'A part of the name, in any case.' }),
  ...pageQuery,
})

const slot = z.object({
  scheduledFor: instant,
  local: z.string().meta({ description: 'With offset and zone, as in RFC 9557.' }),
})

export const upcomingSlots = component(
  'UpcomingSlots',
  z.object({
    items: z.array(
      slot.extend({ isSkipped: z.boolean().meta({ description: 'Somebody took it out: it will not run.' }) }),
    ),
  }),
  'What a cadence says of a span of time.',
)

export const slotsQuery = z.strictObject({
  from: instantInput.optional().meta({ description: 'Without it now.' }),
  to: instantInput.optional(),
  limit: countInput(1000).optional().meta({ description: 'How many at most, 1 to 1000. Without it 50.' }),
})

export const editPlan = component(
  'EditPlan',
  z.object({
    schedule: schedule.meta({ description: 'As it would be.' }),
    added: z.array(slot),
    removed: z.array(slot),
    comparedUntil: instant.nullable().meta({ description: 'Slots after it were not compared; null if all were.' }),
  }),
  'What an edit would do to the slots ahead.',
)

export const editQuery = z.strictObject({
  dryRun: z
    .enum(['true', 'false'], expected('true or false'))
    .optional()
    .meta({ description: 'True: answers what would change, and changes nothing.' }),
})

export const pauseRequest = component(
  'PauseRequest',
  z.strictObject(
    {
      reason: z.string(expected('a reason of 1 to 500 characters')).meta({ examples: ['The provider is down'] }),
    },
    expected('an object'),
  ),
)

export const slotRequest = component(
  'SlotRequest',
  z.strictObject({ scheduledFor: instantInput }, expected('an object')),
  'Names one slot.',
)

export const scheduleHistory = component(
  'ScheduleHistory',
  z.object({
    items: z.array(
      z.object({
        change: z.string().meta({ examples: ['paused'] }),
        revision: z.int(),
        nextSlotAt: instant.nullable(),
        actor: z.string(),
        reason: z.string().nullable(),
        changedAt: instant,
      }),
    ),
  }),
  'Who did what to a schedule, the first first.',
)

export const deletedSchedules = component('DeletedSchedules', z.object({ deleted: z.int() }))

export type ScheduleInput = z.input<typeof scheduleInput>
export type ScheduleEdit = z.input<typeof scheduleEdit>
export type Schedule = z.infer<typeof schedule>
export type EditPlan = z.infer<typeof editPlan>
