import { z } from 'zod'

import { component } from '../component.ts'
import { json } from './json.ts'

const secretRef = z
  .string()
  .regex(/^[A-Za-z\d][A-Za-z\d._-]{0,99}$/)
  .meta({ description: 'The name of a secret of the project, never the secret itself.' })

const httpAuth = component(
  'HttpAuth',
  z.union([
    z.object({ kind: z.literal('none') }),
    z.object({ kind: z.literal('bearer'), secretRef }),
    z.object({ kind: z.literal('hmac'), secretRef }),
  ]),
  '`bearer`: sent in Authorization. `hmac`: signed by Standard Webhooks.',
)

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
    auth: httpAuth.optional().meta({ description: 'How the request proves who sends it. Without it, not at all.' }),
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
