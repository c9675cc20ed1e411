import { z } from 'zod'

import { expected } from '../expected.ts'

const LIMIT_MAX = 200

/** A whole number in a query, where everything is text. */
export function countInput(max: number): z.ZodType<number> {
  const range = expected(`a whole number from 1 to ${max}`)
  return z.preprocess(
    (text) => (typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : text),
    z.int(range).min(1, range).max(max, range),
  )
}

/** How to ask for a page. */
export const pageQuery = {
  cursor: z
    .string(expected('the nextCursor of the page before'))
    .optional()
    .meta({ description: 'The `nextCursor` of the page before.' }),
  limit: countInput(LIMIT_MAX)
    .optional()
    .meta({ description: `How many at most, 1 to ${LIMIT_MAX}. Without it 50.` }),
}

/** A page of something, in the order that its list has. */
export function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item),
    nextCursor: z.string().nullable().meta({ description: 'Asks for the next page; null on the last.' }),
  })
}
