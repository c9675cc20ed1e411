import { z } from 'zod'

import { expected } from './expected.ts'

const KEY = expected('a text of 1 to 255 printable characters')

/** Headers of a request that is answered once, however often it is sent. */
export const mayBeRepeated = z.object({
  'idempotency-key': z
    .string(KEY)
    .regex(/^[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?$/, KEY)
    .optional()
    .meta({ description: 'Asked again with the same key and body within a day, the same answer is given.' }),
})
