import { z } from 'zod'

import { component } from '../component.ts'
import { expected } from '../expected.ts'
import { instant } from './instant.ts'
import { ROLES } from './key.ts'
import { pageOf } from './page.ts'

export const memberInput = component(
  'MemberInput',
  z.strictObject(
    {
      role: z
        .enum(ROLES, expected(`one of ${ROLES.join(', ')}`))
        .meta({ description: 'The most that the subject may do, whatever its key or token says.' }),
    },
    expected('an object'),
  ),
)

export const member = component(
  'Member',
  z.object({
    subject: z.string().meta({ examples: ['user:alice'] }),
    role: z.enum(ROLES),
    addedBy: z.string(),
    addedAt: instant,
    removedBy: z.string().nullable(),
    removedAt: instant.nullable().meta({ description: 'Since when it may do nothing; null unless it was removed.' }),
  }),
  'Somebody of whom a project knows. Who is not listed may do what their key or token says.',
)

export const memberPage = component('MemberPage', pageOf(member))

export type MemberInput = z.input<typeof memberInput>
export type Member = z.infer<typeof member>
