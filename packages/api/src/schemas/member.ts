import { z } from 'zod'

import { component } from '../component.ts'
import { expected } from '../expected.ts'
import { instant, role } from './fields.ts'
import { pageOf } from './page.ts'

export const memberInput = component(
  'MemberInput',
  z.strictObject(
    { role: role.meta({ description: 'The most that the subject may do, whatever its key or token says.' }) },
    expected('an object'),
  ),
)

export const member = component(
  'Member',
  z.object({
    subject: z.string().meta({ examples: ['user:alice'] }),
    role,
    addedBy: z.string(),
    addedAt: instant,
    removedBy: z.string().nullable(),
    removedAt: instant.nullable().meta({ description: 'When the subject lost all access; null unless removed.' }),
  }),
  'A subject whose role the project limits. A subject without an entry may do what its key or token says.',
)

export const memberPage = component('MemberPage', pageOf(member))

export type MemberInput = z.input<typeof memberInput>
export type Member = z.infer<typeof member>
