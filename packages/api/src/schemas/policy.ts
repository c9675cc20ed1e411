import { z } from 'zod'

import { component } from '../component.ts'

const OVERLAP = ['forbid', 'queue', 'allow', 'replace'] as const
const MISSED = ['skip', 'run_once'] as const

const retry = {
  maxAttempts: z.int().min(1).max(100),
  baseSeconds: z.int().min(1).max(86_400),
  capSeconds: z.int().min(1).max(86_400),
}

const fields = {
  overlap: z.enum(OVERLAP).meta({ description: 'What happens to a slot while the run before it is under way.' }),
  missed: z.enum(MISSED).meta({ description: 'What happens to a slot that could not begin in time.' }),
  startingDeadlineSeconds: z.int().min(1).max(604_800).meta({ description: 'How late a slot may begin.' }),
  autoPauseThreshold: z
    .union([z.literal(0), z.int().min(3).max(100)])
    .meta({ description: 'Failed runs in a row after which the schedule pauses itself; 0 is never.' }),
  spreadSeconds: z.int().min(0).max(3600).meta({ description: 'Over how many seconds equal slots are spread.' }),
}

/** In answers: nothing is left open. */
export const policy = component('Policy', z.object({ ...fields, retry: z.object(retry) }), 'How a schedule behaves.')

/** In requests: any part of it. */
export const policyInput = component(
  'PolicyInput',
  z.object({ ...fields, retry: z.object(retry).partial() }).partial(),
  'Any part of a policy; the rest is default.',
)
