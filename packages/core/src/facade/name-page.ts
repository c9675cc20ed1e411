import { z } from 'zod'

import { PAGE_DEFAULT, PAGE_MAX } from './checked-arguments.ts'
import { checkedObject, expected, storableText } from './checked-object.ts'

/** Which page of a list that is ordered by name. */
export interface NamePageOptions {
  /** The last name of the page before. */
  readonly after?: string
  /** 1..200 @default 50 */
  readonly limit?: number
}

const NAME_MAX_LENGTH = 300

const limitShape = expected(`a whole number from 1 to ${PAGE_MAX}`)

const NAME_PAGE = z.strictObject(
  {
    after: storableText(NAME_MAX_LENGTH).optional(),
    limit: z.int(limitShape).min(1, limitShape).max(PAGE_MAX, limitShape).optional(),
  },
  expected('an object'),
)

export function checkedNamePage(options: NamePageOptions): { after: string | null; limit: number } {
  const { after = null, limit = PAGE_DEFAULT } = checkedObject(options, NAME_PAGE)
  return { after, limit }
}
