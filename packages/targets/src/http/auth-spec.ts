import { z } from 'zod'

import { found } from './fault.ts'

/** How a request proves who sends it. The secret itself is never part of a schedule (I8), only its name within the project. */
export type HttpAuth =
  | { readonly kind: 'none' }
  /** `Authorization: Bearer <secret>` */
  | { readonly kind: 'bearer'; readonly secretRef: string }
  /** Signed as Standard Webhooks says. */
  | { readonly kind: 'hmac'; readonly secretRef: string }

const SECRET_REF = /^[A-Za-z\d][A-Za-z\d._-]{0,99}$/
const KIND_EXPECTED = 'Expected "bearer", "hmac" or "none"'
const SECRET_REF_EXPECTED =
  'Expected the name of a secret: 1 to 100 letters, digits, dots, hyphens and underscores, a letter or digit first'

const secretRef = z
  // What stands here by mistake may be the secret itself, so it is not shown.
  .string({ error: (issue) => `${SECRET_REF_EXPECTED}, but found ${kindOf(issue.input)}.` })
  .regex(SECRET_REF, { error: `${SECRET_REF_EXPECTED}, but found another text.` })

export const authSchema: z.ZodType<HttpAuth> = z.discriminatedUnion(
  'kind',
  [
    z.strictObject({ kind: z.literal('none') }),
    z.strictObject({ kind: z.literal('bearer'), secretRef }),
    z.strictObject({ kind: z.literal('hmac'), secretRef }),
  ],
  { error: (issue) => (issue.code === 'invalid_union' ? `${KIND_EXPECTED}.` : authExpected(issue.input)) },
)

function authExpected(input: unknown): string {
  return `Expected an object such as { "kind": "bearer", "secretRef": "…" }, but found ${kindOf(input)}.`
}

function kindOf(input: unknown): string {
  return typeof input === 'string' ? 'a text' : found(input)
}
