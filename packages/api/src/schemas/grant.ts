import { z } from 'zod'

import { component } from '../component.ts'
import { expected } from '../expected.ts'
import { BILLING_ACCOUNT_MAX_LENGTH, GRANT_SCOPE_MAX_LENGTH, GRANT_SCOPES, GRANT_WARNING_DAYS } from '../limits.ts'
import { GRANT_WARNINGS } from '../words.ts'
import { instant, instantInput, isStorable, storableText, typedSubject } from './fields.ts'
import { pageOf } from './page.ts'

/** A star may be the whole object of a scope, or the first label of its host. Anywhere else it would match nothing, so it is refused. */
const SCOPE = /^[^\s:*]+:[^\s:*]+:((\*\.)?[^\s*]+|\*)$/

const SCOPE_SHAPE = expected(
  'a scope such as http:dispatch:example.com, http:dispatch:*.example.com for every name below it, or http:dispatch:* for every object of that kind and verb',
)
const SCOPES_SHAPE = expected(`a list of ${GRANT_SCOPES.min} to ${GRANT_SCOPES.max} scopes`)

export const grantInput = component(
  'GrantInput',
  z.strictObject(
    {
      subject: typedSubject
        .optional()
        .meta({ description: 'The subject that runs act as. The default is the caller.', examples: ['user:alice'] }),
      scopes: z
        .array(z.string(SCOPE_SHAPE).refine(isScope, SCOPE_SHAPE), SCOPES_SHAPE)
        .min(GRANT_SCOPES.min, SCOPES_SHAPE)
        .max(GRANT_SCOPES.max, SCOPES_SHAPE)
        .meta({ examples: [['http:dispatch:digest.internal']] }),
      billingAccountId: storableText(BILLING_ACCOUNT_MAX_LENGTH)
        .nullable()
        .optional()
        .meta({ description: 'The account that pays.' }),
      expiresAt: instantInput
        .nullable()
        .optional()
        .meta({ description: 'When the grant expires. If absent or null, it never does.' }),
    },
    expected('an object'),
  ),
  'A grant to create.',
)

export const grantWarning = z
  .enum(GRANT_WARNINGS)
  .nullable()
  .meta({
    description: `\`expires_soon\` means that the grant expires within ${GRANT_WARNING_DAYS} days: renew it. Null if it is in order.`,
  })

export const grantRenewal = component(
  'GrantRenewal',
  z.strictObject(
    { expiresAt: instantInput.nullable().meta({ description: 'When the grant expires. If null, it never does.' }) },
    expected('an object'),
  ),
  'The new expiry of a grant.',
)

export const grant = component(
  'Grant',
  z.object({
    id: z.uuid(),
    subject: z.string(),
    scopes: z.array(z.string()),
    billingAccountId: z.string().nullable(),
    scheduleId: z.uuid().nullable().meta({
      description: 'The one schedule that the grant was created for and ends with; null if any schedule may use it.',
    }),
    expiresAt: instant.nullable(),
    warning: grantWarning,
    revokedAt: instant.nullable(),
    revokedBy: z.string().nullable(),
    createdBy: z.string(),
    createdAt: instant,
  }),
  'A durable, scoped, revocable permission to execute.',
)

export const grantPage = component('GrantPage', pageOf(grant))

export type GrantInput = z.input<typeof grantInput>
export type GrantRenewal = z.input<typeof grantRenewal>
export type Grant = z.infer<typeof grant>

function isScope(scope: string): boolean {
  return scope.length <= GRANT_SCOPE_MAX_LENGTH && SCOPE.test(scope) && isStorable(scope)
}
