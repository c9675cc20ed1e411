import { z } from 'zod'

import { component } from '../component.ts'
import { expected } from '../expected.ts'
import { instant } from './instant.ts'
import { pageOf } from './page.ts'

export const ROLES = ['member', 'admin'] as const

const fields = {
  id: z.uuid(),
  tenant: z.string(),
  project: z.string(),
  subject: z.string(),
  role: z.enum(ROLES),
  prefix: z.string().meta({ description: 'How the key begins.' }),
  createdBy: z.string(),
  createdAt: instant,
  revokedBy: z.string().nullable(),
  revokedAt: instant.nullable(),
}

export const keyRequest = component(
  'KeyInput',
  z.strictObject(
    {
      tenant: z.string(expected('the id of a tenant')).optional().meta({ description: 'Without it the caller’s.' }),
      project: z.string(expected('the id of a project')),
      subject: z.string(expected('a typed subject such as user:alice')).meta({ examples: ['user:alice'] }),
      role: z
        .enum(ROLES, expected(`one of ${ROLES.join(', ')}`))
        .meta({ description: 'A member reads, an admin also changes.' }),
    },
    expected('an object'),
  ),
  'A key to be made.',
)

export const apiKey = component('ApiKey', z.object(fields), 'Who may call, and in whose name.')

export const newApiKey = component(
  'NewApiKey',
  z.object({ ...fields, key: z.string().meta({ description: 'Shown this once.' }) }),
)

export const apiKeyPage = component('ApiKeyPage', pageOf(apiKey))

export type KeyInput = z.input<typeof keyRequest>
export type ApiKey = z.infer<typeof apiKey>
export type NewApiKey = z.infer<typeof newApiKey>
