import { z } from 'zod'

import { component } from '../component.ts'
import { ATTEMPT_OUTCOMES, RUN_REASONS, RUN_STATES, RUN_TRIGGERS, RUN_WAITS } from '../words.ts'
import { instant, json } from './fields.ts'
import { pageOf, pageQuery } from './page.ts'

const fields = {
  id: z.uuid(),
  scheduleId: z.uuid(),
  scheduledFor: instant.meta({ description: 'The slot.' }),
  revision: z.int().meta({ description: 'The revision of the schedule when the run began.' }),
  trigger: z.enum(RUN_TRIGGERS),
  state: z.enum(RUN_STATES),
  reason: z
    .string()
    .nullable()
    .meta({
      description: `Why the slot did not run, or why the run did not go on: ${RUN_REASONS.join(', ')}, or a reason of a module.`,
    }),
  explanation: z.string().meta({ description: 'State and reason in a sentence.' }),
  latenessMs: z.int().meta({ description: 'The time from the slot to its line in the ledger.' }),
  attemptCount: z.int(),
  begunAt: instant,
  startedAt: instant.nullable(),
  waitsFor: z
    .enum(RUN_WAITS)
    .nullable()
    .meta({
      description:
        'What the run waits for: another run of its schedule to end (`turn`), a worker with room (`worker`), the end of its ' +
        'backoff (`retry`), the instant that its target named (`deferred`), or a completion from elsewhere (`completion`). ' +
        'Null while a worker holds the run, and once it has ended.',
    }),
  retryAt: instant.nullable().meta({ description: 'When the backoff ends; null unless the run waits for that.' }),
  deadlineAt: instant.nullable().meta({
    description: 'When a detached run times out, unless it is completed or its deadline is moved; else null.',
  }),
  heartbeatAt: instant
    .nullable()
    .meta({ description: 'When the called side last moved the deadline; null if it did not.' }),
  reference: z.string().nullable().meta({ description: 'What the target called the work that it passed on.' }),
  cancelRequestedAt: instant.nullable(),
  completedAt: instant.nullable(),
  error: json.meta({ description: 'The error of the last attempt; null if there is none.' }),
}

export const run = component('Run', z.object(fields), 'One line of the ledger: what happened to one slot.')

const attempt = component(
  'Attempt',
  z.object({
    attempt: z.int(),
    workerId: z.uuid(),
    outcome: z.enum(ATTEMPT_OUTCOMES),
    startedAt: instant,
    completedAt: instant,
    error: json,
    result: json,
    completedBy: z
      .string()
      .nullable()
      .meta({ description: 'Who completed the attempt; null if its worker ended it, or lost it.' }),
  }),
  'One try at a run.',
)

export const runWithAttempts = component('RunWithAttempts', z.object({ ...fields, attempts: z.array(attempt) }))

export const runPage = component('RunPage', pageOf(run))

export const runQuery = z.strictObject(pageQuery)

export type Run = z.infer<typeof run>
export type RunWithAttempts = z.infer<typeof runWithAttempts>
