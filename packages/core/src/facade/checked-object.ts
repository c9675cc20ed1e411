import { z } from 'zod'

import { invalidInput } from '../errors.ts'
import { foundText } from '../policy/found-text.ts'
import { schemaProblems } from '../policy/schema-problems.ts'
import { isUuid } from '../uuid.ts'
import { PAGE_DEFAULT, PAGE_MAX } from './checked-arguments.ts'
import { isNameableSubject, isStorable } from './stored-text.ts'

const ROOT = 'input'

/**
 * An input of a known shape. Copied before it is looked at, so that whatever throws or changes when it is read does so here.
 * @param names what whoever wrote it calls a field, where that is not its name here
 * @throws CarillonError `invalid_input`, with every field at fault
 */
export function checkedObject<Value>(
  input: unknown,
  schema: z.ZodType<Value>,
  names: Readonly<Record<string, string>> = {},
): Value {
  const parsed = schema.safeParse(copied(input))
  if (parsed.success) return parsed.data
  throw invalidInput(
    schemaProblems(parsed.error, ROOT).map(({ path, message }) => {
      const field = path.slice(ROOT.length + 1)
      return { path: Object.hasOwn(names, field) ? (names[field] ?? field) : field, message }
    }),
  )
}

/** A text of so many characters that Postgres keeps as it is. */
export function storableText(maxLength: number): z.ZodType<string> {
  const shape = expected(`a text of 1 to ${maxLength} characters, none of them U+0000`)
  return z.string(shape).refine((text) => text !== '' && text.length <= maxLength && isStorable(text), shape)
}

const subjectShape = expected('a typed subject such as user:alice')

/** Somebody, by type and name (E-29). */
export const typedSubject = z.string(subjectShape).refine(isNameableSubject, subjectShape)

/** For zod: what to say about a value of another shape. */
export function expected(shape: string) {
  return { error: ({ input }: { readonly input?: unknown }) => `expected ${shape}, got ${foundText(input)}` }
}

/** Which page of a list: those before an id, the newest first. */
export interface PageOptions {
  /** The last id of the page before. */
  readonly before?: string
  /** 1..200 @default 50 */
  readonly limit?: number
}

const idShape = expected('the id of the last item of the page before')
const limitShape = expected(`a whole number from 1 to ${PAGE_MAX}`)

const PAGE = z.strictObject(
  {
    before: z.string(idShape).refine(isUuid, idShape).optional(),
    limit: z.int(limitShape).min(1, limitShape).max(PAGE_MAX, limitShape).optional(),
  },
  expected('an object'),
)

export function checkedPage(options: PageOptions): { before: string | null; limit: number } {
  const { before = null, limit = PAGE_DEFAULT } = checkedObject(options, PAGE)
  return { before, limit }
}

function copied(input: unknown): unknown {
  try {
    return structuredClone(input)
  } catch (error) {
    const why = error instanceof Error ? error.message : 'it throws'
    throw invalidInput([{ path: '', message: `expected plain data, got what cannot be copied: ${why.slice(0, 200)}` }])
  }
}
