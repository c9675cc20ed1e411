import { z } from 'zod'

import { component } from '../component.ts'
import { policy } from './policy.ts'

const targetKind = component(
  'TargetKind',
  z.object({
    kind: z.string(),
    title: z.string().meta({ description: 'The name of the kind in lists and forms.' }),
    schema: z
      .record(z.string(), z.unknown())
      .meta({ description: 'The JSON Schema of the whole `target` of a schedule, `kind` included.' }),
    policies: z.array(z.object({ cadenceKinds: z.array(z.string()), policy })).meta({
      description: 'The policy that a schedule gets if it names none. It may differ by the kind of its cadence.',
    }),
    scopePattern: z.string().nullable().meta({
      description: 'The scope that a grant needs, such as `http:dispatch:<host>`; null if the kind names none.',
    }),
    hasHooks: z.boolean().meta({
      description:
        'True if the kind takes part in the transactions of its runs: only workers that serve it handle them.',
    }),
    example: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({ description: 'A target of this kind; null if the kind has no example.' }),
  }),
  'A kind of target that schedules of this installation can call.',
)

export const targetKinds = component('TargetKinds', z.object({ items: z.array(targetKind) }))

export type TargetKind = z.infer<typeof targetKind>
