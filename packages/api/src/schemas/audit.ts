import { z } from 'zod'

import { component } from '../component.ts'
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
        schedules: z.int(),
        slots: z.int(),
        unreadable: z.int().meta({ description: 'Schedules whose spec could not be read.' }),
        truncated: z.int().meta({ description: 'Schedules of which only the earliest slots were compared.' }),
        findings: z.int(),
        repaired: z.int(),
      })
      .nullable()
      .meta({ description: 'Over all projects; null before the first.' }),
    findings: z
      .array(finding)
      .meta({ description: 'Of the caller’s project, the newest first. In a sound system none.' }),
  }),
  'Whether every slot that came due has its line.',
)

export const auditRequested = component('AuditRequested', z.object({ requestedAt: instant }))

export type AuditReport = z.infer<typeof auditReport>
