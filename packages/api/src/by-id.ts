import { z } from 'zod'

/** The parameter of every path that has one. */
export const byId = z.strictObject({ id: z.string() })
