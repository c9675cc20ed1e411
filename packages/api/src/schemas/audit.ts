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
    'run_stuck',
    'attempt_missing',
    'revision_missing',
    'run_contradicted',
    'count_wrong',
  ]),
  scheduleId: z.uuid().nullable(),
  scheduledFor: instant.nullable(),
  detail: z.string().meta({ description: 'What was found, and what to do.' }),
  isRepaired: z.boolean(),
  foundAt: instant.meta({ description: 'When it was found first.' }),
  seenAt: instant.meta({ description: 'When the last audit that found it ended.' }),
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
        isWhole: z.boolean().meta({
          description: 'False for a report of what was found before an audit looked at everything for the first time.',
        }),
        schedules: total('Schedules that were compared.'),
        slots: total('Slots that were compared.'),
        unreadable: total('Schedules whose spec could not be read.'),
        truncated: total('Schedules of which only the earliest slots were compared.'),
        findings: total('What was found, by this audit and since it ended, and slots that were lost within a day.'),
        repaired: total('What of it was repaired.'),
      })
      .nullable()
      .meta({
        description:
          'When it was; its counts are over all projects, and null but for the key of the installation. Null before the first.',
      }),
    auditedUntil: instant.nullable().meta({
      description:
        'Every slot that came due up to this instant was compared with its spec; some minutes ago unless the audit is behind. Null before the first.',
    }),
    findings: z.array(finding).meta({
      description:
        'Of the caller’s project, the newest first; with the key of the installation also those of no project. In a sound system none.',
    }),
  }),
  'Whether every slot that came due has its line.',
)

export const auditRequested = component('AuditRequested', z.object({ requestedAt: instant }))

export type AuditReport = z.infer<typeof auditReport>
