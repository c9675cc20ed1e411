import { z } from 'zod'

import { component } from '../component.ts'
import { json } from './json.ts'

const httpTarget = component(
  'HttpTarget',
  z.object({
    kind: z.literal('http'),
    url: z.string().meta({ examples: ['https://digest.internal/run'] }),
    method: z
      .enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])
      .optional()
      .meta({ description: 'Without it POST.' }),
    headers: z
      .record(z.string(), z.string())
      .optional()
      .meta({ description: 'Besides those that Carillon sets; no credentials.' }),
    payload: json.optional().meta({ description: 'Sent unchanged as the JSON body.' }),
    timeoutSeconds: z.int().min(1).max(300).optional().meta({ description: 'Of one attempt. Without it 30.' }),
  }),
  'An HTTP request. The slot, the attempt and the Idempotency-Key are in its headers.',
)

const otherTarget = component(
  'OtherTarget',
  z.looseObject({
    kind: z
      .string()
      .regex(/^(?!http$)[a-z][a-z0-9_]{0,30}$/)
      .meta({ description: 'A kind that this installation serves besides http.' }),
  }),
  'What a target of another kind wants to know.',
)

/** What is called. */
export const target = component('Target', z.union([httpTarget, otherTarget]), 'What is called.')
