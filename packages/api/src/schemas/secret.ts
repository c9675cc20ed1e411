import { z } from 'zod'

import { component } from '../component.ts'
import { instant } from './instant.ts'
import { pageOf } from './page.ts'

/** What was found instead is not told: it may be the secret. */
export const secretInput = component(
  'SecretInput',
  z.strictObject(
    {
      value: z
        .string({ error: 'expected a text of 1 to 8192 characters, got another kind of value' })
        .meta({ description: '1 to 8192 characters, none of them a control character.', writeOnly: true }),
    },
    { error: 'expected an object with the field value, got something else' },
  ),
)

export const secret = component(
  'Secret',
  z.object({
    name: z.string(),
    version: z.int().meta({ description: 'Grows by one with each value.' }),
    createdBy: z.string(),
    createdAt: instant,
    updatedBy: z.string(),
    updatedAt: instant,
  }),
  'A secret of a project. Its value is never answered.',
)

export const secretPage = component('SecretPage', pageOf(secret))

export type SecretInput = z.input<typeof secretInput>
export type Secret = z.infer<typeof secret>
