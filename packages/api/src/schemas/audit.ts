import { z } from 'zod'

import { component } from '../component.ts'
import { ADMIN_KEY_PHRASE, FINDING_KINDS } from '../words.ts'
import { instant } from './fields.ts'

const finding = z.object({
  kind: z.enum(FINDING_KINDS),
  scheduleId: z.uuid().nullable(),
  scheduledFor: instant.nullable(),
  detail: z.string().meta({ description: 'What was found, and what to do.' }),
  isRepaired: z.boolean(),
  foundAt: instant.meta({ description: 'When it was found first.' }),
  seenAt: instant.meta({ description: 'When the last audit that found it ended.' }),
})

/** A count that only the installation sees. I9: a count over all tenants would tell each of them about the others. */
const total = (what: string) =>
  z
    .int()
    .nullable()
    .meta({ description: `${what} Counted over all projects; null unless the request has ${ADMIN_KEY_PHRASE}.` })

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
          description: 'False until an audit has looked at everything once.',
        }),
        schedules: total('Schedules that were compared.'),
        slots: total('Slots that were compared.'),
        unreadable: total('Schedules whose spec could not be read.'),
        truncated: total('Schedules of which only the earliest slots were compared.'),
        findings: total('Findings of this audit and since it ended, and slots that were lost within a day.'),
        repaired: total('Findings that were repaired.'),
      })
      .nullable()
      .meta({
        description:
          'The latest audit. Its counts are over all projects, and null unless the request has the admin key. Null before the first audit.',
      }),
    auditedUntil: instant.nullable().meta({
      description:
        'Every slot that came due before this instant was compared with its spec. It is some minutes ago unless the audit is behind. Null before the first audit.',
    }),
    findings: z.array(finding).meta({
      description:
        'Findings in the caller’s project, the newest first; with the admin key also those of no project. A healthy system has none.',
    }),
  }),
  'Whether every slot that came due has its line in the ledger.',
)

export const auditRequested = component('AuditRequested', z.object({ requestedAt: instant }))

export type AuditReport = z.infer<typeof auditReport>
