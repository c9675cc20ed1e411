import { z } from 'zod'

import { component } from '../component.ts'
import { expected } from '../expected.ts'
import { instant, instantInput } from './instant.ts'
import { pageOf } from './page.ts'

const SCOPES = expected('a list of 1 to 50 scopes')

export const grantInput = component(
  'GrantInput',
  z.strictObject(
    {
      subject: z
        .string(expected('a typed subject such as user:alice'))
        .optional()
        .meta({ description: 'In whose name. Without it the caller’s.', examples: ['user:alice'] }),
      scopes: z
        .array(z.string(expected('a scope such as http:dispatch:example.com')), SCOPES)
        .min(1, SCOPES)
        .max(50, SCOPES)
        .meta({ examples: [['http:dispatch:digest.internal']] }),
      billingAccountId: z
        .string(expected('the id of an account'))
        .nullable()
        .optional()
        .meta({ description: 'Who pays.' }),
      expiresAt: instantInput.nullable().optional().meta({ description: 'Without it never.' }),
    },
    expected('an object'),
  ),
  'A right to execute that is to be given.',
)

const WARNINGS = ['expires_soon', 'expired', 'revoked'] as const

export const grantWarning = z
  .enum(WARNINGS)
  .nullable()
  .meta({ description: '`expires_soon` within 7 days; renew it. Null: nothing is amiss.' })

export const grantRenewal = component(
  'GrantRenewal',
  z.strictObject(
    { expiresAt: instantInput.nullable().meta({ description: 'Until when. Null: for ever.' }) },
    expected('an object'),
  ),
  'How long a grant is to last.',
)

export const grant = component(
  'Grant',
  z.object({
    id: z.uuid(),
    subject: z.string(),
    scopes: z.array(z.string()),
    billingAccountId: z.string().nullable(),
    scheduleId: z
      .uuid()
      .nullable()
      .meta({ description: 'The one schedule that it was made for and ends with; null if any may be given it.' }),
    expiresAt: instant.nullable(),
    warning: grantWarning,
    revokedAt: instant.nullable(),
    revokedBy: z.string().nullable(),
    createdBy: z.string(),
    createdAt: instant,
  }),
  'A durable, scoped, revocable right to execute.',
)

export const grantPage = component('GrantPage', pageOf(grant))

export type GrantInput = z.input<typeof grantInput>
export type GrantRenewal = z.input<typeof grantRenewal>
export type Grant = z.infer<typeof grant>
