import { z } from 'zod'

import { component } from '../component.ts'
import { INSTALLATION_KEY } from '../installation-key.ts'
import { instant } from './instant.ts'

const finding = z.object({
  kind: z.enum([
    'slot_lost',
    'slot_unknown',
    'schedule_past_due',
    'run_without_lease',
    'run_without_job',
    'job_without_run',
  ]),
  scheduleId: z.uuid().nullable(),
  scheduledFor: instant.nullable(),
  detail: z.string(),
  isRepaired: z.boolean(),
  foundAt: instant,
})

/** I9: a count over all tenants tells each of them about the others. */
const total = (what: string) =>
  z
    .int()
    .nullable()
    .meta({ description: `${what} Over all projects; null but for ${INSTALLATION_KEY}.` })

export const auditReport = component(
  'AuditReport',
  z.object({
    latest: z
      .object({
        id: z.uuid(),
        from: instant,
        to: instant,
        startedAt: instant,
        completedAt: instant,
        schedules: total('Schedules that were compared.'),
        slots: total('Slots that were compared.'),
        unreadable: total('Schedules whose spec could not be read.'),
        truncated: total('Schedules of which only the earliest slots were compared.'),
        findings: total('What was found.'),
        repaired: total('What of it was repaired.'),
      })
      .nullable()
      .meta({
        description:
          'When it was; its counts are over all projects, and null but for the key of the installation. Null before the first.',
      }),
    findings: z
      .array(finding)
      .meta({ description: 'Of the caller’s project, the newest first. In a sound system none.' }),
  }),
  'Whether every slot that came due has its line.',
)

export const auditRequested = component('AuditRequested', z.object({ requestedAt: instant }))

export type AuditReport = z.infer<typeof auditReport>
