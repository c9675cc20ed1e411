import { z } from 'zod'

import { component } from '../component.ts'
import { instant } from './instant.ts'
import { json } from './json.ts'
import { pageOf, pageQuery } from './page.ts'

/*
 * The words of the core, which this package may not import: it runs anywhere. Should the core know one more, the server no
 * longer compiles where it maps a run.
 */
export const RUN_STATES = ['pending', 'running', 'retrying', 'succeeded', 'failed', 'cancelled', 'skipped'] as const

export const RUN_REASONS = [
  'overlap',
  'missed',
  'paused',
  'grant_expired',
  'grant_revoked',
  'grant_scope',
  'access_lost',
  'excluded',
  'superseded',
] as const

/** What a waiting run waits for. */
export const RUN_WAITS = ['turn', 'worker', 'retry', 'deferred', 'completion'] as const

const fields = {
  id: z.uuid(),
  scheduleId: z.uuid(),
  scheduledFor: instant.meta({ description: 'The slot.' }),
  revision: z.int().meta({ description: 'Of the schedule, as it was when the run began.' }),
  trigger: z.enum(['schedule', 'manual']),
  state: z.enum(RUN_STATES),
  reason: z.enum(RUN_REASONS).nullable().meta({ description: 'Why it did not run, or did not go on.' }),
  explanation: z.string().meta({ description: 'State and reason in a sentence.' }),
  latenessMs: z.int().meta({ description: 'From the slot to the line in the ledger.' }),
  attemptCount: z.int(),
  begunAt: instant,
  startedAt: instant.nullable(),
  waitsFor: z
    .enum(RUN_WAITS)
    .nullable()
    .meta({
      description:
        'What it waits for: another run of its schedule to end (`turn`), a worker with room (`worker`), the end of its backoff ' +
        '(`retry`), the instant that its target named (`deferred`), or a completion from elsewhere (`completion`). Null while ' +
        'a worker holds it, and once it is over.',
    }),
  retryAt: instant.nullable().meta({ description: 'When its backoff ends; null unless it waits for that.' }),
  cancelRequestedAt: instant.nullable(),
  completedAt: instant.nullable(),
  error: json.meta({ description: 'Of the last attempt; null if there is none.' }),
}

export const run = component('Run', z.object(fields), 'One line of the ledger: what became of one slot.')

const attempt = component(
  'Attempt',
  z.object({
    attempt: z.int(),
    workerId: z.uuid(),
    outcome: z.enum(['succeeded', 'failed', 'cancelled', 'malformed', 'lost']),
    startedAt: instant,
    completedAt: instant,
    error: json,
    result: json,
  }),
  'One try at a run.',
)

export const runWithAttempts = component('RunWithAttempts', z.object({ ...fields, attempts: z.array(attempt) }))

export const runPage = component('RunPage', pageOf(run))

export const runQuery = z.strictObject(pageQuery)

export type Run = z.infer<typeof run>
export type RunWithAttempts = z.infer<typeof runWithAttempts>
export type RunState = Run['state']
