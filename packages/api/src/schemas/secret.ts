import { foundText } from '@carillon/cadence/words'
import { z } from 'zod'

import { component } from '../component.ts'
import { SECRET_VALUE_MAX_LENGTH } from '../limits.ts'
import { instant, isStorable, NAME_PATTERN, NAME_SHAPE } from './fields.ts'
import { pageOf } from './page.ts'

/* No message here quotes the caller's text: the caller may have put the secret where its name belongs. */

const CONTROL_CHARACTER = /\p{Cc}/u

export const secretName = z
  .string({ error: ({ input }) => `expected ${NAME_SHAPE}, got ${foundText(input)}` })
  .refine((text) => NAME_PATTERN.test(text), { error: `expected ${NAME_SHAPE}, got another text` })

const value = z
  .string({ error: ({ input }) => valueText(input) })
  .superRefine((text, context) => {
    if (valueFault(text) !== undefined) context.addIssue({ code: 'custom', message: valueText(text) })
  })
  .meta({
    description: `1 to ${SECRET_VALUE_MAX_LENGTH} characters, none of them a control character.`,
    writeOnly: true,
  })

export const secretInput = component(
  'SecretInput',
  z.strictObject({ value }, { error: 'expected an object with the field value, got something else' }),
)

/** A secret to store, with its name, which a request has in its path. */
export const namedSecretInput = z.strictObject({ name: secretName, value })

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
  'A secret of a project. No answer holds its value.',
)

export const secretPage = component('SecretPage', pageOf(secret))

export type Secret = z.infer<typeof secret>

function valueText(input: unknown): string {
  const shape = `a text of 1 to ${SECRET_VALUE_MAX_LENGTH} characters, none of them a control character`
  return `expected ${shape}, got ${valueFault(input) ?? 'another'}`
}

function valueFault(input: unknown): string | undefined {
  if (typeof input !== 'string') return input === undefined ? 'nothing' : `a value of type ${typeof input}`
  if (input === '') return 'an empty one'
  if (input.length > SECRET_VALUE_MAX_LENGTH) return 'a longer one'
  if (CONTROL_CHARACTER.test(input)) return 'one with a control character'
  return isStorable(input) ? undefined : 'one with half a surrogate pair'
}
