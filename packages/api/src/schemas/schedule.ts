import { z } from 'zod'

import { checkedByCore, component } from '../component.ts'
import { expected } from '../expected.ts'
import { SCHEDULES_PER_REQUEST_MAX, PAUSE_REASON_MAX_LENGTH, SCHEDULE_NAME_MAX_LENGTH } from '../limits.ts'
import { SCHEDULE_CHANGES, SCHEDULE_CHANGES_EXPLAINED, SCHEDULE_STATES } from '../words.ts'
import { cadence } from './cadence.ts'
import { instant, json } from './fields.ts'
import { grantWarning } from './grant.ts'
import { pageOf, pageQuery } from './page.ts'
import { policy, policyInput } from './policy.ts'
import { outlook, slot } from './slot.ts'
import { target } from './target.ts'

const scheduleState = z.enum(SCHEDULE_STATES, expected(`one of ${SCHEDULE_STATES.join(', ')}`))

const content = {
  name: z.string().min(1).max(SCHEDULE_NAME_MAX_LENGTH),
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
        description:
          'The grant that its runs act by. If absent or null, the schedule gets a grant of its own, which ends with it.',
      }),
      ownerSubject: z
        .string()
        .optional()
        .meta({ description: 'The owner of the schedule. The default is the caller.', examples: ['user:alice'] }),
    })
    .meta({ examples: [EXAMPLE] }),
  'A schedule to create.',
)

export const scheduleEdit = component(
  'ScheduleEdit',
  z
    .object({
      ...content,
      policy: policyInput,
      grantId: z.uuid().nullable().meta({
        description:
          'Null gives the schedule a grant of its own: the one that it has if that is in force, otherwise a new one.',
      }),
    })
    .partial(),
  'The fields to change. Absent fields stay as they are; a policy is merged field by field.',
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
    revision: z
      .int()
      .meta({ description: 'The number of the revision. It grows with every edit, and it is the ETag.' }),
    cadence,
    description: z.string().meta({ description: 'The cadence in plain English.' }),
    target,
    policy,
    grantId: z.uuid().meta({ description: 'The grant that its runs act by.' }),
    grantExpiresAt: instant.nullable().meta({ description: 'When the grant expires; null if it never does.' }),
    grantWarning,
    nextSlotAt: instant.nullable().meta({ description: 'The next slot; null unless the schedule is active.' }),
    dueAt: instant.nullable().meta({ description: 'The next slot plus the schedule’s offset within its spread.' }),
    skippedSlots: z.array(instant).meta({ description: 'Future slots that a caller skipped.' }),
    runCount: z.int(),
    failureCount: z.int(),
    consecutiveFailures: z.int(),
    createdBy: z.string(),
    createdAt: instant,
    updatedBy: z.string().nullable(),
    updatedAt: instant.nullable(),
    pausedBy: z.string().nullable(),
    pausedReason: z
      .string()
      .nullable()
      .meta({ description: 'Begins with `auto:` if the schedule paused itself after too many failures.' }),
    pausedAt: instant.nullable(),
  }),
  'A schedule: its owner, its cadence, its target, its grant and its policy.',
)

export const schedulePage = component('SchedulePage', pageOf(schedule))

export const scheduleQuery = z.strictObject({
  state: scheduleState.optional(),
  targetKind: z.string(expected('a kind of target')).optional(),
  q: z
    .string(expected('a part of a name'))
    .optional()
    .meta({ description: 'A part of the name, in upper or lower case.' }),
  ...pageQuery,
})

const kindPreview = json.optional().meta({
  description: 'What the kind of the target shows, such as a forecast of the cost. Absent if it shows nothing.',
})

export const schedulePreview = component(
  'SchedulePreview',
  z.object({
    name: z.string(),
    cadence,
    target,
    policy,
    grantId: z.uuid().nullable().meta({ description: 'Null if the schedule would get a grant of its own.' }),
    ownerSubject: z.string(),
    ...outlook,
    preview: kindPreview,
  }),
  'The schedule that a create would make, with every default filled in.',
)

const BATCH = expected(`a list of 1 to ${SCHEDULES_PER_REQUEST_MAX} schedules`)

export const scheduleBatch = component(
  'ScheduleBatch',
  z.strictObject(
    {
      schedules: z
        .array(checkedByCore(scheduleInput), BATCH)
        .min(1, BATCH)
        .max(SCHEDULES_PER_REQUEST_MAX, {
          error: ({ input }) => `expected at most ${SCHEDULES_PER_REQUEST_MAX} schedules, got ${countOf(input)}`,
        }),
    },
    expected('an object'),
  ),
  'Schedules to create together. The body has the same size limit as any other, a little more than 1 MiB.',
)

export const createdBatch = component(
  'CreatedBatch',
  z.object({ ids: z.array(z.uuid()).meta({ description: 'The ids, in the order of the request.' }) }),
)

export const previewedBatch = component(
  'PreviewedBatch',
  z.object({ items: z.array(schedulePreview).meta({ description: 'The schedules, in the order of the request.' }) }),
)

export const editPlan = component(
  'EditPlan',
  z.object({
    schedule: schedule.meta({ description: 'The schedule after the edit.' }),
    added: z.array(slot),
    removed: z.array(slot),
    comparedUntil: instant
      .nullable()
      .meta({ description: 'Slots after this instant were not compared; null if all were.' }),
    preview: kindPreview,
  }),
  'What an edit would do to the future slots.',
)

export const editQuery = z.strictObject({
  dryRun: z
    .enum(['true', 'false'], expected('true or false'))
    .optional()
    .meta({ description: 'If true, the answer shows what the edit would change, and nothing is changed.' }),
})

export const pauseRequest = component(
  'PauseRequest',
  z.strictObject(
    {
      reason: z
        .string(expected(`a reason of 1 to ${PAUSE_REASON_MAX_LENGTH} characters`))
        .meta({ examples: ['The provider is down'] }),
    },
    expected('an object'),
  ),
)

const scheduleChange = component(
  'ScheduleChange',
  z.object({
    change: z.enum(SCHEDULE_CHANGES).meta({ description: SCHEDULE_CHANGES_EXPLAINED, examples: ['paused'] }),
    revision: z.int(),
    nextSlotAt: instant.nullable(),
    scheduledFor: instant
      .nullable()
      .meta({ description: 'The slot of the run that was requested or cancelled; null for every other change.' }),
    actor: z.string().meta({ description: 'Who made the change.' }),
    reason: z.string().nullable(),
    changedAt: instant,
  }),
  'One line of the history of a schedule.',
)

export const historyPage = component('HistoryPage', pageOf(scheduleChange))

export const historyQuery = z.strictObject(pageQuery)

export const deletedSchedules = component('DeletedSchedules', z.object({ deleted: z.int() }))

export const SCHEDULE_FIELDS: readonly string[] = Object.keys(scheduleInput.shape)
export const SCHEDULE_EDIT_FIELDS: readonly string[] = Object.keys(scheduleEdit.shape)

export type ScheduleInput = z.input<typeof scheduleInput>
export type ScheduleEdit = z.input<typeof scheduleEdit>
export type Schedule = z.infer<typeof schedule>
export type SchedulePreview = z.infer<typeof schedulePreview>
export type EditPlan = z.infer<typeof editPlan>

function countOf(input: unknown): string {
  return Array.isArray(input) ? String(input.length) : 'more'
}
