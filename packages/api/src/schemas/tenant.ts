import { z } from 'zod'

import { checkedByCore, component } from '../component.ts'
import { instant } from './instant.ts'

const limits = {
  maxSchedulesPerProject: z.int().min(1).max(1_000_000).nullable(),
  maxSchedulesPerUser: z.int().min(1).max(1_000_000).nullable().meta({ description: 'Of one `user:…` in a project.' }),
  minimumSeconds: z.int().min(1).max(86_400).nullable().meta({ description: 'The least between two slots.' }),
  requestsPerMinute: z
    .int()
    .min(1)
    .max(1_000_000_000)
    .nullable()
    .meta({ description: 'Of each key, or of who has a token. Holds within 10 seconds.' }),
  allowedHosts: z
    .array(z.string().min(1).max(300))
    .max(200)
    .nullable()
    .meta({
      description: 'Host patterns that HTTP targets may reach, within what the installation allows; empty: none.',
      examples: [['*.example.com']],
    }),
}

const input = component(
  'TenantInput',
  z.strictObject(limits).partial(),
  'What a tenant may have. What is null or left out is as the installation says.',
)

export const tenantInput = checkedByCore(input)

export const tenant = component(
  'Tenant',
  z.object({
    tenant: z.string(),
    ...limits,
    updatedBy: z.string().nullable().meta({ description: 'Null as long as nobody has said anything about it.' }),
    updatedAt: instant.nullable(),
  }),
  'What a tenant may have, where it differs from what the installation allows to all. Null: as the installation says.',
)

export type TenantInput = z.input<typeof input>
export type Tenant = z.infer<typeof tenant>
