import { z } from 'zod'

import { component } from '../component.ts'
import { expected } from '../expected.ts'
import {
  ALLOWED_HOST_MAX_LENGTH,
  ALLOWED_HOSTS_MAX,
  PROJECT_SCHEDULES,
  TENANT_REQUESTS_PER_MINUTE,
  TENANT_SLOT_DISTANCE_SECONDS,
  USER_SCHEDULES,
} from '../limits.ts'
import { instant, storableText, wholeNumber } from './fields.ts'

const OR_NULL = ', or null'
const HOSTS = expected(`a list of 0 to ${ALLOWED_HOSTS_MAX} hosts`)

const limits = {
  maxSchedulesPerProject: wholeNumber(PROJECT_SCHEDULES, OR_NULL).nullable(),
  maxSchedulesPerUser: wholeNumber(USER_SCHEDULES, OR_NULL)
    .nullable()
    .meta({ description: 'The most schedules of one `user:…` in a project.' }),
  minimumSeconds: wholeNumber(TENANT_SLOT_DISTANCE_SECONDS, OR_NULL)
    .nullable()
    .meta({ description: 'The least distance between two slots of a cadence.' }),
  requestsPerMinute: wholeNumber(TENANT_REQUESTS_PER_MINUTE, OR_NULL).nullable().meta({
    description: 'The limit of each key, or of each subject with a token. A change takes effect within 10 seconds.',
  }),
  allowedHosts: z
    .array(storableText(ALLOWED_HOST_MAX_LENGTH).meta({ minLength: 1, maxLength: ALLOWED_HOST_MAX_LENGTH }), HOSTS)
    .max(ALLOWED_HOSTS_MAX, HOSTS)
    .nullable()
    .meta({
      description:
        'Host patterns that HTTP targets may call, within those that the installation allows. An empty list allows none.',
      examples: [['*.example.com']],
    }),
}

export const tenantInput = component(
  'TenantInput',
  z.strictObject(limits, expected('an object')).partial(),
  'The limits of a tenant. The installation’s limit applies where one is null or absent.',
)

export const tenant = component(
  'Tenant',
  z.object({
    tenant: z.string(),
    ...limits,
    updatedBy: z
      .string()
      .nullable()
      .meta({ description: 'Who set the limits last; null if the tenant never had limits of its own.' }),
    updatedAt: instant.nullable(),
  }),
  'The limits of a tenant. The installation’s limit applies where one is null.',
)

export type TenantInput = z.input<typeof tenantInput>
export type Tenant = z.infer<typeof tenant>
