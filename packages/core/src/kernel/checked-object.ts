import {
  expected,
  fieldProblems,
  isStorable,
  isUuid,
  LAST_INSTANT_MS,
  PAGE_POSITION_MAX_LENGTH,
  PAGE_SIZE,
  storableText,
  wholeNumber,
} from '@carillon/api'
import { z } from 'zod'

import { invalidInput, type Problem } from './errors.ts'

/** Everything that a schema found wrong with an input. Each path begins with `root`, the caller's name for the input. */
export function schemaProblems(error: z.ZodError, root: string): Problem[] {
  const nameOf = (path: readonly string[]): string => [root, ...path].join('.')
  return fieldProblems(error, nameOf).map(({ field, message }) => ({ path: field, message }))
}

/**
 * Checks an input against a schema. The input is copied first, so a getter that throws or changes its value does so here.
 * @param names maps a field of the schema to the name that the caller knows it by, where the two differ
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
    fieldProblems(parsed.error, (path) => path.join('.')).map(({ field, message }) => {
      return { path: Object.hasOwn(names, field) ? (names[field] ?? field) : field, message }
    }),
  )
}

const INSTANT_SHAPE = expected('an instant in epoch milliseconds')

/** An instant in an argument. In the API it is a text. */
export const epochMs = z.int(INSTANT_SHAPE).min(0, INSTANT_SHAPE).max(LAST_INSTANT_MS, INSTANT_SHAPE)

const FILTER_SHAPE = expected('a text without U+0000')

/** A text that stored texts are compared with. It may be empty, or longer than any of them. */
export const filterText = z.string(FILTER_SHAPE).refine(isStorable, FILTER_SHAPE)

const ID_SHAPE = expected('the id of the last item of the page before')

/** One page of a list that is ordered by id, newest first. */
export const PAGE = z.strictObject(
  {
    /** The last id of the previous page. */
    before: z.string(ID_SHAPE).refine(isUuid, ID_SHAPE).optional(),
    /** At most `PAGE_SIZE.max`. @default `PAGE_SIZE.default` */
    limit: wholeNumber(PAGE_SIZE).optional(),
  },
  expected('an object'),
)

export type PageOptions = z.input<typeof PAGE>

export function checkedPage(options: PageOptions): { before: string | null; limit: number } {
  const { before = null, limit = PAGE_SIZE.default } = checkedObject(options, PAGE)
  return { before, limit }
}

const NAME_PAGE = z.strictObject(
  {
    /** The last name of the previous page. */
    after: storableText(PAGE_POSITION_MAX_LENGTH).optional(),
    limit: PAGE.shape.limit,
  },
  expected('an object'),
)

/** One page of a list that is ordered by name. */
export type NamePageOptions = z.input<typeof NAME_PAGE>

export function checkedNamePage(options: NamePageOptions): { after: string | null; limit: number } {
  const { after = null, limit = PAGE_SIZE.default } = checkedObject(options, NAME_PAGE)
  return { after, limit }
}

function copied(input: unknown): unknown {
  try {
    return structuredClone(input)
  } catch (error) {
    const why = error instanceof Error ? error.message : 'it throws'
    throw invalidInput([
      { path: '', message: `expected plain data, got a value that cannot be copied: ${why.slice(0, 200)}` },
    ])
  }
}
