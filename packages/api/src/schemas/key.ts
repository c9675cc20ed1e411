import { z } from 'zod'

import { component } from '../component.ts'
import { expected } from '../expected.ts'
import { instant, role, scopeName, typedSubject } from './fields.ts'
import { pageOf } from './page.ts'

const fields = {
  id: z.uuid(),
  tenant: z.string(),
  project: z.string(),
  subject: z.string(),
  role,
  prefix: z.string().meta({ description: 'The first characters of the key.' }),
  createdBy: z.string(),
  createdAt: instant,
  revokedBy: z.string().nullable(),
  revokedAt: instant.nullable(),
}

export const keyInput = component(
  'KeyInput',
  z.strictObject(
    {
      tenant: scopeName.optional().meta({ description: 'The default is the tenant of the caller.' }),
      project: scopeName,
      subject: typedSubject.meta({ examples: ['user:alice'] }),
      role: role.meta({ description: 'A member reads, an admin also writes.' }),
    },
    expected('an object'),
  ),
  'An API key to create.',
)

export const apiKey = component('ApiKey', z.object(fields), 'An API key: the subject and the role of its requests.')

export const newApiKey = component(
  'NewApiKey',
  z.object({ ...fields, key: z.string().meta({ description: 'The key itself. Only this answer holds it.' }) }),
)

export const apiKeyPage = component('ApiKeyPage', pageOf(apiKey))

export type KeyInput = z.input<typeof keyInput>
export type ApiKey = z.infer<typeof apiKey>
export type NewApiKey = z.infer<typeof newApiKey>
