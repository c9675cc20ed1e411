import { z } from 'zod'

import { expected } from '../expected.ts'
import { PAGE_SIZE } from '../limits.ts'
import { wholeNumber } from './fields.ts'

/** A whole number in a query, where every value is text. */
export function countInput(range: { readonly min: number; readonly max: number }): z.ZodType<number> {
  return z.preprocess(
    (text) => (typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : text),
    wholeNumber(range),
  )
}

/** The parameters of every list. */
export const pageQuery = {
  cursor: z
    .string(expected('the nextCursor of the page before'))
    .optional()
    .meta({ description: 'The `nextCursor` of the page before.' }),
  limit: countInput(PAGE_SIZE)
    .optional()
    .meta({ description: `The most items of the page, 1 to ${PAGE_SIZE.max}. The default is ${PAGE_SIZE.default}.` }),
}

/** A page of a list. */
export function pageOf<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item),
    nextCursor: z.string().nullable().meta({ description: 'The cursor of the next page; null on the last.' }),
  })
}
